# Builds norch/libnorch.so and sets up everything that the targets below need (a .venv included). The parts are in mk/:
# machine.mk (what this machine has), flags.mk, library.mk, cuda.mk, python.mk (.venv), check.mk, release.mk and
# site.mk.
#
#   make -j8                      on 8 cores; the tests take all cores by themselves
#   make DEV=1 test ARGS=-x       with the library of `make dev`
#   make CC=clang                 another compiler
#   make WERROR=-Werror           warnings are errors, as they are in `make check` and .ci/run
#   make PYTHON=/opt/py/bin/python3
#   make test ARGS="-k matmul"    arguments for the program that the target runs
#   make V=1                      whole command lines
#   make CC=aarch64-linux-gnu-gcc BUILD=build/aarch64 LIB=build/aarch64/libnorch.so
#   make NVCC=                    without the CUDA backend
#   make cuda CUDART=shared       uses CUDA's runtime from the wheel that the extra "cuda" installs
#   make CUDA_ARCHS="75 80 90"    GPUs to hold machine code for (default: those of this machine, else 80)

DEV   ?=
BUILD ?= build$(if $(DEV),/dev)
LIB   ?= $(if $(DEV),$(BUILD),norch)/libnorch.so
VENV  ?= .venv
ARGS  ?=
WERROR ?=
NVCC  ?= nvcc
CXX   ?= g++
CUDA_HOME ?= /usr/local/cuda
PYTHON ?=
SANITIZE ?=
Q := $(if $(V),,@)
comma := ,

ifeq ($(OS),Windows_NT)
$(error norch is not built on Windows: install its wheel, or install WSL (wsl --install), and run make in it)
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all dev demo test test-fast check format fuzz bench ci-long docs stubs api clean help

include mk/machine.mk mk/flags.mk mk/library.mk mk/cuda.mk mk/python.mk mk/check.mk mk/release.mk mk/site.mk
-include $(OBJECTS:.o=.d) $(CUDA_OBJECTS:.o=.d) $(SIM_OBJECTS:.o=.d) $(SIM_TRIALS:.o=.d)

# If there is an nvcc, `make` builds the CUDA backend too: about three minutes on two cores for one architecture
# (CUDA_ARCHS). If that fails, the library is still there, and make tries again when sources change.
all: $(LIB) $(if $(and $(NVCC_FOUND),$(filter norch/libnorch.so,$(LIB))),$(CUDA_TRIED))  ## norch/libnorch.so, and the CUDA backend if nvcc is found (the default)

dev:  ## build/dev/libnorch.so, at -O1 and for this machine's instruction set only; then make DEV=1 test-fast
	@$(MAKE) --no-print-directory DEV=1 NVCC= build/dev/libnorch.so

demo: $(VENV)/ready-examples  ## trains a model on real handwritten digits and draws what it learned
	$(Q)$(RUN) examples/digits.py $(ARGS)

# On all cores; ARGS="-n 0" runs in one process, for --pdb and -s.
PYTEST = $(RUN) -m pytest -n auto --maxprocesses=8

# tests/parts.py samples tests that are repeated over dtypes, shapes and modes; ALL=1 runs all of them.
SAMPLED = $(if $(ALL),,NORCH_TEST_PART=$${NORCH_TEST_PART-sampled})
test: $(VENV)/ready-test $(STUBS)  ## the test suite, sampled where tests repeat over dtypes, shapes and modes (ALL=1: all; ARGS="-k matmul": a part)
	$(Q)$(SAMPLED) $(PYTEST) $(ARGS)

# tests/parts.py chooses the tests, for float32 alone. pytest caches its rewritten tests, which saves 7 CPU seconds a
# process.
FAST = $(if $(PART),,NORCH_TEST_PART=fast NORCH_TEST_TORCH=0) NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-float32}
test-fast: $(VENV)/ready-test  ## some tests of everything, to run while editing, in 1.5 CPU minutes; PART=autograd: all tests of a folder
	$(Q)PYTHONDONTWRITEBYTECODE= $(FAST) $(PYTEST) -q -m "not slow" $(PART:%=tests/%) $(ARGS)

CLANG_FORMAT = $(VENV)/bin/python -c 'import clang_format; clang_format.clang_format()'
C_FILES = $(shell find csrc tests benchmarks -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp')

# The warnings are those at -O1: half a minute on two cores at first, then only changed files. -fsyntax-only would be
# faster, but warnings that follow values through a function need the optimizer. .ci/run has already built everything
# with -Werror, so it sets CHECK_BUILD= to skip this build.
CHECK_BUILD ?= BUILD=build/check LIB=build/check/libnorch.so CFLAGS=-O1
check: $(VENV)/ready-dev $(STUBS)  ## ruff, clang-format, mypy, stubtest and the C compiler's warnings, and a count of lines
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

ci-long:  ## the checks that .ci/run leaves out: all dtypes, all sanitizers, wheels, emulated aarch64, musl, nvcc, random input; takes hours
	$(Q).ci/long

bench: $(VENV)/ready-test  ## timings against NumPy, and against PyTorch if it is installed
	$(Q)$(RUN) -m benchmarks $(ARGS)

docs: $(VENV)/ready-test  ## docs/operations.md, the table of operations, and pictures of the pages, from the code
	$(Q)$(RUN) docs/operations.py
	$(Q)$(RUN) docs/seeing.py
	$(Q)$(RUN) docs/ways.py

stubs: $(STUBS)  ## the .pyi files, from the code: names made at run time, for editors and type checkers

api: $(VENV)/ready-test  ## tests/api.txt, the public names and their signatures, from the code
	$(Q)$(RUN) tests/api.py

clean:  ## removes everything that make made, the .venv included
	rm -rf build dist norch/libnorch.so norch/libnorch_cuda.so $(VENV) .pytest_cache .hypothesis .ruff_cache .mypy_cache
	@find norch tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' Makefile mk/*.mk | awk -F'|' '{ printf "  make %-16s %s\n", $$1, $$2 }'
