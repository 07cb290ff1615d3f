# The site: pages by Sphinx, and the files that make their code run in the browser.
.PHONY: live site learn test-site
# The files that its live pages load: the editor, Pyodide, and the wheel for WebAssembly. Without npm, or with LIVE=,
# the pages are text.
LIVE ?= $(if $(shell command -v npm),live)
live: wasm build/wasm/node_modules/ready $(VENV)/ready-site  ## the files that the live pages of the site load, in build/live
	@echo "  LIVE  build/live/static"
	@mkdir -p build/live/packages
	$(Q)$(RUN) docs/live/build.py build/live/static build/wasm/node_modules $(DIST)/norch_dl-*wasm32.whl \
	    "$(ZIG) cc -target $(TARGET_wasm32) $(WASM_HEADERS)" "$(subst $(firstword $(CC)),$(ZIG),$(filter-out --export-if-defined=norch_%,$(WASM_LINK)))"
	$(Q)$(RUN) docs/live/lab.py build/live/packages build/live/static/live $(DIST)/norch_dl-*wasm32.whl

# NOTEBOOKS="5_library" runs the code of these chapters only; without it, of all.
NOTEBOOKS ?=
site: $(VENV)/ready-site $(STUBS) $(LIVE)  ## the documentation as a site, to be read from build/site/index.html; its code runs in the browser
	$(Q)$(RUN) -m sphinx --jobs auto --quiet --fail-on-warning --keep-going --builder html docs build/site $(ARGS)
	$(Q)$(RUN) docs/learn/notebooks.py build/site/notebooks $(NOTEBOOKS) 2>build/site/notebooks.log || { cat build/site/notebooks.log >&2; exit 1; }
	$(if $(LIVE),$(Q)$(RUN) docs/live/lab.py build/site)
	@echo "open build/site/index.html; make learn serves it, so that its code runs"

learn: site  ## the site, whose chapters run in the browser, served on this machine; notebooks in JupyterLite
	$(Q)$(RUN) docs/live/serve.py build/site

# SITE= does without building it again.
SITE ?= site
test-site: $(SITE) $(VENV)/ready-browser  ## tests its pages in headless Chromium: chapters cell by cell, exercises, playgrounds
	$(Q)$(RUN) -m pytest -q -n 2 tests/project/test_site.py $(ARGS)
