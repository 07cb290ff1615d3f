# CUDA: a plugin, and the simulation of it that runs everywhere.
.PHONY: cuda no-nvcc cudasim check-cuda cuda-toolchain cuda-report cuda-counts
CUDA_LIB ?= $(dir $(LIB))libnorch_cuda.so
CUDA_TRIED := $(BUILD)/cuda/tried
$(CUDA_TRIED): $(wildcard csrc/cuda/*) $(ABI_FILES) $(BUILD)/cuda/flags | $(LIB)
	@$(MAKE) --no-print-directory $(CUDA_LIB) || \
	    echo 'norch: the CUDA backend was not built, the reason is above; the library for the CPU is ready' >&2
	@touch $@

# Files named *_dtype.cu are compiled once for each wide dtype of csrc/dtypes.def.
DTYPES := $(shell sed -n 's/^WIDE. *[A-Z0-9]*, *\([a-z0-9]*\),.*/\1/p' csrc/dtypes.def)
CUDA_SOURCES := $(filter-out %_dtype.cu,$(sort $(wildcard csrc/cuda/*.cu)))
CUDA_UNITS := $(CUDA_SOURCES:csrc/cuda/%.cu=%) \
    $(foreach d,$(DTYPES),$(patsubst csrc/cuda/%_dtype.cu,%_dtype.$d,$(sort $(wildcard csrc/cuda/*_dtype.cu))))

CUDA_ARCHS ?= $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv$(comma)noheader 2>/dev/null | tr -d . | sort -u),80)
# Machine code for some architectures, and PTX for the first (without its own features, as sm_90a has), which newer GPUs
# translate.
CUDA_PTX = $(firstword $(CUDA_ARCHS:90a=90))
cuda_code = $(foreach a,$1,-gencode arch=compute_$a$(comma)code=sm_$a) -gencode arch=compute_$(CUDA_PTX)$(comma)code=compute_$(CUDA_PTX)
CUDA_CODE = $(call cuda_code,$(CUDA_ARCHS:90a=90))
# The strongest compression that nvcc has, since 12.8.
CUDA_COMPRESS := $(if $(filter 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.7,$(NVCC_RELEASE)),-compress-all,-compress-mode=size)
# 186: formulas for every dtype compare numbers that may be unsigned with 0
CUDA_FLAGS = -std=c++17 -O3 -I$(BUILD)/core $(CUDA_CODE) -diag-suppress 186 -Xfatbin $(CUDA_COMPRESS) -Xcompiler -fPIC,-fvisibility=hidden,-fwrapv
CUDA_OBJECTS := $(CUDA_UNITS:%=$(BUILD)/cuda/%.o)

# CUDA's runtime is linked in, or shared: then it is that of the package nvidia-cuda-runtime, where the wheels of 12 and
# 13 install it beside norch.
CUDART ?= static
CUDA_RUNPATH := $(if $(filter shared,$(CUDART)),-Xlinker '--enable-new-dtags$(comma)-rpath$(comma)$$ORIGIN/../nvidia/$(if \
    $(filter 12.%,$(NVCC_RELEASE)),cuda_runtime,cu13)/lib')

cuda: $(if $(NVCC_FOUND),$(CUDA_LIB),no-nvcc)  ## the CUDA backend norch/libnorch_cuda.so, with nvcc 12 or 13

no-nvcc:
	@echo "make cuda needs nvcc 12 or 13, and there is none in PATH or CUDA_HOME ($(CUDA_HOME)): make cuda-toolchain gets one" >&2; exit 1

# All packages of one release: a partial pin mixes versions, and fails.
CUDA_WHEELS := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85
# nvcc of CUDA 13 compiles everything. The package index has no nvcc 12, so NVRTC of CUDA 12 compiles the kernels.
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

# Files named *_wgmma.cu have instructions of sm_90a, whose code runs on sm_90 only.
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

# Pointwise operations and reductions round each product and each sum, as on the CPU, whether alone, in chains or as the
# epilogue of a product (cuda/formulas.cuh). So do products of integers.
FORMULA_UNITS := $(foreach d,$(DTYPES),$(filter %_dtype.$d,$(CUDA_UNITS))) $(filter matmul% quantized,$(CUDA_UNITS))
$(FORMULA_UNITS:%=$(BUILD)/cuda/%.o): EXTRA += --fmad=false

# The headers of compiled chains (chain_compile.cu) as string literals, one for each line, under the names by which they
# include each other.
CHAIN_HEADERS := chain_rows.cuh chain.cuh elements.cuh formulas.cuh math.cuh reduce_rows.cuh ../families/chain.h \
    ../core/convert.h ../core/optable.h ../core/plan.h dtype.h ../norch.h ../ops.def ../dtypes.def dtypes.def ../slopes.h \
    ../cpu/math_integer.h ../cpu/math_poly.h ../cpu/math_special.h ../cpu/reduce_states.h
chain_header = $(firstword $(wildcard csrc/cuda/$1 csrc/core/$1 csrc/$1))
CHAIN_TEXTS := $(BUILD)/cuda/headers/chain_headers.inc
$(CHAIN_TEXTS): $(foreach h,$(CHAIN_HEADERS),$(call chain_header,$h)) csrc/cuda/nvrtc_stdint.h $(OPCODES) mk/cuda.mk
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
SIM_FLAGS = -std=c++17 $(if $(SANITIZE),$(OPTIMIZE),-O1 -g1) -Wall -Wextra $(WERROR) -Wno-unknown-pragmas \
    -Wno-bool-compare -Wno-psabi -fPIC -fvisibility=hidden -fwrapv -pthread -I$(BUILD)/core -Itests/cudasim
SIM_PARTS := $(patsubst tests/cudasim/%.cpp,$(SIM_BUILD)/sim_%.o,$(wildcard tests/cudasim/*.cpp))
SIM_OBJECTS := $(CUDA_UNITS:%=$(SIM_BUILD)/%.o) $(SIM_PARTS)

cudasim: $(SIM_LIB) $(SIM_BUILD)/libfaulty.so $(SIM_BUILD)/libnccl.so.2 $(SIM_BUILD)/libnvrtc.so.12  ## the CUDA backend compiled by g++ to run on the CPU, for tests

$(SIM_LIB): $(SIM_OBJECTS)
	$(if $(V),,@echo "  LINK  $@")
	$(Q)$(CXX) -shared -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@.new $(SIM_OBJECTS) -ldl
	@mv $@.new $@

$(eval $(call note,$(SIM_BUILD)/flags,$(CXX) $(SIM_FLAGS)))
# Kernels with mistakes, and single instructions, in a separate copy of the simulation.
SIM_TRIALS := $(patsubst tests/cudasim/%.cu,$(SIM_BUILD)/sim_%.o,$(wildcard tests/cudasim/*.cu))
$(CUDA_OBJECTS) $(SIM_OBJECTS) $(SIM_TRIALS): | $(OPCODES)
$(SIM_BUILD)/libfaulty.so: $(SIM_TRIALS) $(SIM_PARTS)
	$(if $(V),,@echo "  LINK  $@")
	$(Q)$(CXX) -shared -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@.new $^ -ldl
	@mv $@.new $@
# A replacement for NCCL, between processes with simulated devices, and one for NVRTC, which runs the simulation's
# compiler.
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

# Dtypes that test-cudasim tests with ALL=1 only: -O0 halves their compile time.
$(foreach d,bool uint8 int32,$(patsubst %,$(SIM_BUILD)/%.o,$(filter %_dtype.$d,$(CUDA_UNITS)))): EXTRA = -O0

$(BUILD)/cuda/cuda.o $(SIM_BUILD)/cuda.o: EXTRA = -DNORCH_ABI=$(ABI)
$(BUILD)/cuda/cuda.o $(SIM_BUILD)/cuda.o: $(ABI_FILES)

cuda-report: $(VENV)/bin/python  ## registers, spills and wide accesses of the CUDA kernels, as nvcc compiles them
	$(Q)$(RUN) benchmarks/cuda_resources.py $(ARGS)

# The compiler inserts a call of counting.cpp at each memory access of a kernel.
COUNTED := build/cudacounts/libnorch_cudasim.so
cuda-counts: $(VENV)/ready-test  ## bytes, launches and operations of the CUDA kernels, counted in the simulation
	@$(MAKE) --no-print-directory SIM_BUILD=$(patsubst %/,%,$(dir $(COUNTED))) SIM_HOOKS="-fsanitize=thread --param tsan-instrument-func-entry-exit=0" $(COUNTED)
	$(Q)NORCH_CUDA_LIBRARY="$(CURDIR)/$(COUNTED)" $(RUN) -m benchmarks.cuda_counts $(ARGS)

