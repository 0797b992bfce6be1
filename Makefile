# `make demo` shows Halo running, `make test` runs all tests, `make check` the static checks (`make static`) and the fast
# tests, `make bench` the measurements. Each sets up what it needs, once, in a virtual environment beside this file.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
PIP := -m pip install -qq --disable-pip-version-check

.PHONY: demo test check static bench docs clean

demo: $(VENV)/.local
	$(BIN)/halo demo

test: $(VENV)/.dev
	tests/system_packages.sh
	tests/node_packages.sh
	$(BIN)/python -m pytest

check: static
	$(BIN)/python -m pytest -q -m "not local and not terminal and not conformance"

static: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(BENCH)/.bench
	$(BENCH)/bin/python benchmarks/stage_overhead.py
	$(BENCH)/bin/python benchmarks/language.py
	$(BENCH)/bin/python benchmarks/server.py
	$(BENCH)/bin/python benchmarks/journal.py
	$(BENCH)/bin/python benchmarks/calls.py
	$(BENCH)/bin/python benchmarks/ledger.py
	$(BENCH)/bin/python benchmarks/streaming.py
	$(BENCH)/bin/python benchmarks/policies.py
	$(BENCH)/bin/python benchmarks/tools_sql.py
	$(BENCH)/bin/python benchmarks/tools_vectors.py
	$(BENCH)/bin/python benchmarks/tools_mcp.py
	$(BENCH)/bin/python benchmarks/tools_code.py
	$(BENCH)/bin/python benchmarks/runs_listing.py --halo $(BENCH)/bin/halo
	PATH="$(CURDIR)/$(BENCH)/bin:$$PATH" bash benchmarks/startup.sh

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(BENCH) .node site dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Each stamp stands for one set of extras, installed once and again when the project file changes.
$(VENV)/.local $(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) with the extras $(extras) …"
	@$(BIN)/python $(PIP) --editable '.[$(extras)]'
	@touch $@

$(VENV)/.local: extras := local
$(VENV)/.dev: extras := dev,local
$(VENV)/.docs: extras := docs

$(BENCH)/.bench: pyproject.toml | $(BENCH)/bin/python
	@echo "Setting up $(BENCH) …"
	@$(BENCH)/bin/python $(PIP) --editable '.[bench]'
	@touch $@

$(VENV)/bin/python $(BENCH)/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Halo needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	    "Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $* || { rm -rf $*; exit 1; }
