# Everything runs in .venv, which is made on first use; needed are Python 3.11 or newer, make, and a package index.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
# Each worker has servers and folders of its own.
TEST_WORKERS ?= 2
LOCK := --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 --quiet

.PHONY: help demo test check style types contracts differential mutants bench bench-large soak lock docs clean
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

demo: $(VENV)/.runtime ## The whole life cycle on a real runtime; needs no server and no account
	@$(PY) -m handbell demo

test: $(VENV)/.dev ## All tests
	@$(PY) -m pytest -q -n $(TEST_WORKERS) --dist loadgroup

check: style types contracts test ## What must hold of every commit: style, types, contracts, tests

style: $(VENV)/.dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .

types: $(VENV)/.dev
	@$(PY) -m mypy

contracts: $(VENV)/.dev
	@$(VENV)/bin/lint-imports --no-logo --cache-dir .cache/import_linter

bench: $(VENV)/.dev ## The benchmarks, one after the other
	@set -e; for file in tests/bench/[a-z]*.py; do $(PY) -m tests.bench.$$(basename $$file .py); done

differential: $(VENV)/.differential ## The pause tokens beside symfonic-core 9.12.0, in an environment of its own
	@$(VENV)/differential/bin/python -m pytest -q --noconftest tests/differential

mutants: $(VENV)/.dev ## Wrong implementations, each of which its test must notice
	@$(PY) -m tests.mutants.run

bench-large: $(VENV)/.dev ## The sweep over 10,000 pending requests
	@$(PY) -m tests.bench.sweep --rows 10000

soak: $(VENV)/.dev ## The slow runs
	@$(PY) -m pytest -q -m soak --timeout=0

docs: $(VENV)/.dev ## Write the pages that are made from the code
	@$(PY) -m worker.reference.settings_page > docs/settings.md
	@$(PY) -m tests.contract.cayu_guide.table
	@$(PY) -m tests.contract.pause_tokens.table
	@$(PY) -m worker.reference.reasons_page > docs/reasons.md

lock: $(VENV)/.python ## Resolve requirements.txt and requirements-dev.txt anew
	@test -x $(VENV)/lock/bin/uv || { $(PY) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip install --quiet uv; }
	@$(VENV)/lock/bin/uv pip compile pyproject.toml --extra demo --group build $(LOCK) --upgrade -o requirements.txt
	@$(VENV)/lock/bin/uv pip compile pyproject.toml --extra demo --group build --group dev -c requirements.txt $(LOCK) \
		--upgrade -o requirements-dev.txt

clean: ## Remove what make has made; a state_dir stays
	@rm -rf $(VENV) .cache build dist *.egg-info

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not there: name a Python >= 3.11, make PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1): make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: requirements.txt pyproject.toml | $(VENV)/.python
	@$(INSTALL) --require-hashes -r requirements.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@$(INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.differential: pyproject.toml | $(VENV)/.python
	@$(PYTHON) -m venv $(VENV)/differential
	@$(PY) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['differential'], \
		sep='\n')" > $(VENV)/differential/requirements.txt
	@$(VENV)/differential/bin/python -m pip install --quiet --disable-pip-version-check \
		-r $(VENV)/differential/requirements.txt
	@touch $@
