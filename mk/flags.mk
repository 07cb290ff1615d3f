# Flags of the C compiler: first those of all objects, then how each family is optimized.

CLANG := $(findstring clang,$(COMPILER))
# With a check at each access of unrolled loops, the optimizer would take minutes for what is built by instruction set.
UNOPTIMIZED := $(if $(findstring address,$(SANITIZE)),-O0)
FLAGS_baseline := $(if $(DEV),-march=native) -DNR_ISA_NAME=baseline -DNR_ISA_BASELINE
FLAGS_avx2     := -mavx2 -mfma -DNR_ISA_NAME=avx2
FLAGS_avx512   := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mprefer-vector-width=512 -DNR_ISA_NAME=avx512
FLAGS_neon     := -DNR_ISA_NAME=neon -DNR_ISA_BASELINE
FLAGS_simd128  := -msimd128 -DNR_ISA_NAME=simd128 -DNR_ISA_BASELINE

# Under a sanitizer every call releases Python's lock, not only long ones. At -O1 clang would warn about each loop that
# it does not vectorize. Tables for unwinding would take 0.2 of 4.1 MB, and C has no exceptions; -g has them for
# debuggers.
OPTIMIZE = $(if $(SANITIZE),-O1 -g -DNR_LONG_WORK=-1 -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
    $(if $(CLANG),-Wno-pass-failed),\
    $(if $(DEV),-O1 $(if $(CLANG),-Wno-pass-failed),$(TUNE) $(SMALL) $(CLOSE)) -fno-unwind-tables -fno-asynchronous-unwind-tables)
FLAGS = -std=gnu11 $(OPTIMIZE) -Wall -Wextra $(WERROR) -Wdouble-promotion -Wshadow -Wstrict-prototypes $(if $(WINDOWS),,-fPIC) \
    -fvisibility=hidden -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off $(THREADS) -I$(BUILD)/core $(CPPFLAGS) $(CFLAGS)
# Pyodide has one thread, and loads no library that asks for more.
THREADS := $(if $(WASM),,-pthread)
# clang links its sanitizers into the program, unless told that they are libraries.
SHARED_SANITIZER := $(if $(and $(SANITIZE),$(CLANG)),-shared-libsan)
# Every symbol must be found except Python's, which the interpreter provides. In ELF libraries these are weak. On macOS
# they are looked up dynamically, and release/wheels.py checks that there are no others; the suffix there is .so too, as
# that of Python's modules.
LINK_FLAGS := $(if $(or $(findstring darwin,$(MACHINE)),$(findstring macos,$(MACHINE))),\
    -Wl$(comma)-undefined$(comma)dynamic_lookup -Wl$(comma)-install_name$(comma)@rpath/libnorch.so,$(if $(WINDOWS),,-Wl$(comma)-z$(comma)defs))
# Relocations of tables take 5 KB instead of 54; they need the loader of glibc 2.36 or later.
HASH := \#
PACK_FLAG := -Wl$(comma)-z$(comma)pack-relative-relocs
PACK := $(if $(filter-out wasm32-%,$(MACHINE)),$(shell printf '%s\n' '$(HASH)include <features.h>' '$(HASH)if !__GLIBC_PREREQ(2, 36)' '$(HASH)error' \
    '$(HASH)endif' | $(CC) -shared -nostdlib $(PACK_FLAG) -x c -o /dev/null - 2>/dev/null && echo $(PACK_FLAG)))
LINK := -shared $(THREADS) $(LINK_FLAGS) $(PACK) $(if $(SANITIZE),-fsanitize=$(SANITIZE) $(SHARED_SANITIZER)) $(LDFLAGS)

# ---- optimization by family -----------------------------------------------------------------------

TUNE = -O3
# Vectors as at -O3, without its copies of loops.
COMPACT := -O2 $(if $(CLANG),,-ftree-vectorize -fvect-cost-model=dynamic)
# How to clear structures of 128 to 512 bytes, five in each small call: gcc's default, "rep stos", takes 5 to 10 ns to
# start.
SMALL   := $(if $(or $(CLANG),$(filter-out x86_64-%,$(MACHINE))),,$(foreach f,memset memcpy,\
    -m$f-strategy=vector_loop:512:noalign$(comma)libcall:-1:noalign))
# No padding before functions and jump targets, which saves 0.08 MB; loops are aligned.
CLOSE   := $(if $(CLANG),,-falign-functions=1 -falign-jumps=1)
PEEL    := $(if $(CLANG),,-fpeel-loops)
SWITCH  := $(if $(CLANG),,-funswitch-loops -fversion-loops-for-strides)
NO_TAIL := $(if $(CLANG),,--param vect-epilogues-nomask=0)
ALIGN   := -falign-loops=32
NO_JAM  := $(if $(CLANG),,-fno-loop-unroll-and-jam)

BASE := $(filter baseline,$(ISAS))
WIDE := $(filter-out baseline,$(ISAS))
AVX  := $(filter avx%,$(ISAS))
# The baseline of these families runs on machines without AVX2 only; that of others has dtypes that wider builds lack.
SELDOM := $(if $(AVX),attention batch_norm conv cross_entropy distance int8 layer matmul normalize optim pool quantized random recurrent resample \
    sample softmax sort stage)

# $(call tune,FAMILIES,BUILDS,FLAGS). -O3 is not the best for
#   loops of one line, code that runs once a kernel, and most of the baseline       COMPACT
#   code that few machines run                                                      -Os
#   sums in an array, which is in registers once the loops over it are unrolled     COMPACT PEEL
#   options that do not change during a loop, and strides of one element            COMPACT SWITCH
#   loops of few instructions, by up to 1.9 if they straddle lines of the cache     ALIGN
#   formulas: copies of each for half of a vector are 0.12 MB, and pay off with     NO_TAIL
#     AVX-512 alone, in calls of 8 to 15 elements
#   rows of a reduction, which need no copies for several of them at once           NO_JAM
# Reductions of narrow rows, and softmax, take 1.3 to 4 times as long with COMPACT.
tune = $(foreach f,$1,$(foreach isa,$2,$(eval $(BUILD)/cpu/$(f)_isa.$(isa).o: TUNE = $3)))
$(BUILD)/ops/%.o $(BUILD)/program/%.o: TUNE = $(if $(WASM),-Os,$(COMPACT)) # a page has to load each byte
$(if $(WASM),$(BUILD)/python/%.o,$(patsubst %,$(BUILD)/python/%.o,dlpack profile capture/listing capture/recording)): TUNE = $(if $(WASM),-Os,$(COMPACT)) # seldom called
$(BUILD)/cpu/%.baseline.o: TUNE = $(COMPACT)
$(patsubst %,$(BUILD)/cpu/%.o,chain complex memory reduce): TUNE = $(COMPACT)
# Families that take little of the time of a page.
SELDOM_IN_PAGES := $(patsubst %,$(BUILD)/cpu/%.o,complex copy index nonzero scan sort) $(patsubst %,$(BUILD)/core/%.o,check dtype \
    element error library observer optable platform transfer wrap)
$(if $(WASM),$(SELDOM_IN_PAGES): TUNE = -Os)
$(call tune,pointwise,              $(WIDE),         $(COMPACT) $(ALIGN))
$(call tune,pointwise,              baseline avx2,   $(COMPACT) $(ALIGN) $(NO_TAIL))
$(call tune,reduce,                 $(BASE),         $(COMPACT) $(PEEL))
$(call tune,reduce,                 avx2,            -O3 $(NO_JAM))
$(call tune,matmul attention conv layer stage,  $(BASE) $(WIDE), $(COMPACT) $(PEEL))
$(call tune,quantized int8,         $(if $(WASM),,$(WIDE)), $(COMPACT) $(PEEL))
$(call tune,quantized int8,         $(if $(WASM),$(WIDE)), -Os)
$(call tune,optim recurrent,        $(WIDE),         -O3 $(NO_TAIL))
$(call tune,optim,                  $(AVX),          $(COMPACT) $(SWITCH) $(NO_TAIL))
$(call tune,convert,                $(AVX),          $(COMPACT))
$(call tune,distance normalize pool resample sample, $(AVX), $(COMPACT) $(SWITCH))
$(call tune,$(SELDOM),              $(BASE),         -Os)
$(call tune,attention batch_norm cross_entropy pool random recurrent resample sample softmax sort, $(if $(WASM),$(WIDE)), -Os)

# The baseline of these has loops of integers, which all machines use, and of the dtypes of wider builds, for machines
# without AVX2; the latter are optimized for size.
$(if $(AVX),$(if $(or $(CLANG),$(filter -O0,$(CFLAGS))),,$(BUILD)/cpu/pointwise_isa.baseline.o $(BUILD)/cpu/reduce_isa.baseline.o: EXTRA = -DNR_SMALL_BASELINE))

# Only products of matrices, convolutions and attention may be contracted to fused multiply-adds; other operations round
# each product and each sum. Under a sanitizer they are not contracted either: its checks between a product and its sum
# would leave some unfused, and kernels would differ in their bits.
$(BUILD)/cpu/matmul_isa.%.o $(BUILD)/cpu/conv_isa.%.o $(BUILD)/cpu/attention_isa.%.o $(BUILD)/cpu/quantized_isa.%.o: EXTRA = $(if $(SANITIZE),,-ffp-contract=fast)
$(BUILD)/cpu/cpu.o: EXTRA = $(ISAS:%=-DNR_HAS_%)
