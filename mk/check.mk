# Tests in other environments than `make test`: ISA builds, sanitizers, the simulated device, other libraries.
.PHONY: test-isa sanitize sanitize-threads test-cudasim sanitize-cudasim test-ecosystem mutate
# The kernel tests of the suite on each ISA build that this machine can run, or on some (RUN_ISAS="baseline avx2").
# ALL=1 means the same as for `make test`.
RUN_ISAS ?= $(ISAS)
KERNEL_TESTS = $(shell grep -l mark.kernel tests/*/*.py)
test-isa: $(VENV)/ready-test  ## the kernel tests, once for each ISA build that this machine runs
	@runs=" $$($(RUN) -c 'import ctypes; say = ctypes.CDLL("$(LIB)").norch_isa_builds; say.restype = ctypes.c_char_p; print(say().decode())') "; \
	for isa in $(RUN_ISAS); do case "$$runs" in \
	    *" $$isa "*) echo "NORCH_ISA=$$isa"; NORCH_ISA=$$isa NORCH_TEST_DTYPES=float32,float64 $(SAMPLED) $(PYTEST) -q -m "kernel and not slow" $(KERNEL_TESTS) $(ARGS) || exit 1 ;; \
	    *) echo "NORCH_ISA=$$isa: built, but not run, for this machine has no $$isa" ;; esac; done

# By default ASan stops at an allocation that fails; and Python itself never frees all of its memory.
SANITIZED := build/sanitize/libnorch.so
# SANITIZE_CC=clang takes half the time of gcc; it needs clang's runtime (Debian: libclang-rt-dev). ALL=1 has the ISA
# builds of a release; without it there is one build for the instructions of this machine, as in `make dev`.
SANITIZE_CC ?= $(CC)
RUNTIMES = $(shell for library in $(if $(findstring clang,$(shell $(SANITIZE_CC) --version)),libclang_rt.asan-$(firstword $(subst -, ,$(MACHINE))).so,\
    libasan.so libubsan.so); do $(SANITIZE_CC) -print-file-name=$$library; done)

SANITIZED_PART = $(SAMPLED) $(if $(ALL),,NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-bool,int64,float16,float32})
sanitize: $(VENV)/ready-test  ## the test suite under the address and undefined-behaviour sanitizers (ALL=1: all dtypes, slow tests and ISA builds)
	@$(MAKE) --no-print-directory CC="$(SANITIZE_CC)" BUILD=build/sanitize LIB=$(SANITIZED) $(if $(ALL),,DEV=1) \
	    SANITIZE=address,undefined,float-cast-overflow $(SANITIZED)
	$(Q)LD_PRELOAD="$(RUNTIMES)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	    UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc NORCH_TEST_TORCH=0 $(SANITIZED_PART) NORCH_LIBRARY="$(CURDIR)/$(SANITIZED)" \
	    $(PYTEST) -rfE -m "$(if $(ALL),,not slow and )not resident" \
	    $(if $(ALL),,--deselect tests/ops/test_isa.py::test_the_builds_that_run_are_those_the_system_lists) --ignore=tests/project/test_build.py --ignore=tests/project/test_wheels.py --ignore=tests/project/test_site.py $(ARGS)

# The tests that use threads, except those that fork (the thread sanitizer does not work after that) and the one in
# which threads write memory that others read. Python itself is not checked.
THREADED := build/sanitize-threads/libnorch.so
sanitize-threads: $(VENV)/ready-test  ## the tests of threads under the thread sanitizer
	@$(MAKE) --no-print-directory BUILD=build/sanitize-threads LIB=$(THREADED) SANITIZE=thread $(THREADED)
	$(Q)LD_PRELOAD="$(shell $(CC) -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 NORCH_NUM_THREADS=4 NORCH_TEST_TORCH=0 \
	    NORCH_LIBRARY="$(CURDIR)/$(THREADED)" $(RUN) -m pytest -q tests/library/test_threads.py -k "not fork and not child and not index_that_another" $(ARGS)

# The suite on the device "cuda", which is simulated: samples over two dtypes, without tests that are slow or that
# measure the memory of the process. ALL=1 runs every case.
SIM_PART = $(SAMPLED) $(if $(ALL),,NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-int64,float32})
test-cudasim: $(VENV)/ready-test cudasim  ## the test suite on the device "cuda", simulated on the CPU (ALL=1: all dtypes, and slow tests)
	$(Q)$(SIM_PART) NORCH_CUDA_LIBRARY="$(CURDIR)/$(SIM_LIB)" NORCH_TEST_DEVICE=cuda $(PYTEST) $(if $(ALL),,-m "not slow and not resident") $(ARGS)

# The same under the address sanitizer, which knows the blocks of the simulated device's memory and ends the process if
# a kernel accesses memory outside of them. One test does that on purpose.
SIM_SANITIZED_TESTS := cudasim ops conv pool normalize attention scan_sort embedding
SIM_SANITIZED := build/sanitize/cudasim/libnorch_cudasim.so
sanitize-cudasim: $(VENV)/ready-test  ## a part of that suite with the simulation under the address sanitizer
	@$(MAKE) --no-print-directory BUILD=build/sanitize LIB=$(SANITIZED) SANITIZE=address cudasim
	$(Q)LD_PRELOAD="$(shell $(CXX) -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc \
	    NORCH_TEST_TORCH=0 NORCH_TEST_DTYPES=float32 NORCH_CUDA_LIBRARY="$(CURDIR)/$(SIM_SANITIZED)" NORCH_TEST_DEVICE=cuda \
	    $(PYTEST) -m "not slow" --deselect "tests/cuda/test_cudasim.py::test_mistakes_end_the_device[past the end]" $(or $(ARGS),$(wildcard $(SIM_SANITIZED_TESTS:%=tests/*/test_%.py)))

# In a separate environment. .ci/run runs a part: ECOSYSTEM=requirements_ci ARGS=--ci.
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

# ARGS="norch/autograd -n 100 --seed 3": files, their number, another sample.
mutate: $(VENV)/ready-test  ## plants bugs of one token in control code, one by one, and lists those that no test notices
	$(Q)NORCH_TEST_DTYPES=$${NORCH_TEST_DTYPES-float32} $(RUN) tests/mutate.py $(ARGS)
