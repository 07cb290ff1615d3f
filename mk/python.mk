# The .venv and its packages.
.PHONY: venv-examples venv-test venv-dev
# Makes the .venv import the package from the checkout, whatever became of its links.
RUN = PYTHONPATH="$(CURDIR)"$(if $(DEV), NORCH_LIBRARY="$(abspath $(LIB))") $(VENV)/bin/python

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

# Stubs give editors and type checkers the names that the package makes at run time. release/stubs.py writes all of them
# at once; this one stands for all. An installed package has them already.
STUBS := norch/__init__.pyi
$(STUBS): release/stubs.py $(shell find norch -name '*.py') | $(VENV)/bin/python $(LIB)
	@echo "  STUBS norch"
	$(Q)$(RUN) $<

venv-examples venv-test venv-dev: venv-%: $(VENV)/ready-%

