# What this machine has: the compiler and nvcc, and the ISA builds that follow from them.
ifeq ($(origin CC),default)
CC := $(or $(firstword $(foreach c,cc gcc clang,$(if $(shell command -v $(c)),$(c)))),cc)
endif
ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),all)),)
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
ifeq ($(MACHINE),)
$(error norch needs a C compiler, and "$(CC)" is not one: install gcc or clang (Debian, Ubuntu: apt install build-essential))
endif
COMPILER := $(shell $(CC) --version | head -n 1)
# nvcc of the machine, or of `make cuda-toolchain`; a cross-compiled library does not use it.
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

# $(eval $(call note,FILE,TEXT)): writes the text to a file, but only if it differs, so that the file is new only if the
# text is. The rule is for `make clean all`, which removes the file.
define note
$(if $(MACHINE),$(shell mkdir -p $(dir $1) && { echo '$2' | cmp -s - $1 || echo '$2' > $1; }))
$1:
	@mkdir -p $$(@D) && echo '$2' > $$@
endef

# ISA builds: the families in csrc/cpu/*_isa.c are compiled once for each, and one is chosen at load. WITHOUT_ISA=avx512
# leaves a build out. `make dev` has one, which has the instructions of this machine.
WASM := $(filter wasm32-%,$(MACHINE))
WINDOWS := $(findstring windows,$(MACHINE))$(findstring mingw,$(MACHINE))
ISAS := $(filter-out $(WITHOUT_ISA),$(if $(WASM),simd128,$(if $(filter aarch64-% arm64-%,$(MACHINE)),neon,\
    baseline $(if $(DEV),,$(if $(filter x86_64-%,$(MACHINE)),avx2 avx512)))))

ifeq ($(MAKELEVEL)$(if $(MACHINE),,quiet),0)
$(info compiler    $(COMPILER), $(MACHINE))
$(info ISA builds  $(ISAS))
$(info nvcc        $(NVCC_SAYS))
endif

