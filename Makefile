# The everyday commands. `make` alone lists them.

PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help dev format check test slow bless docs site bench

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: ## Install xlalite editable with everything that development needs
	$(PYTHON) -m pip install -e '.[dev]'

format: ## Rewrite the sources in the common layout
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format

check: ## Lint, types, layers, packaging: the quick checks
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy -p xlalite
	$(PYTHON) -m pytest -q tests/test_layering.py tests/test_packaging.py tests/test_public_names.py

test: ## Run the tests
	$(PYTHON) -m pytest -n auto

slow: ## Run the tests marked slow, and those of the backends as on older machines
	$(PYTHON) -m pytest -n auto -m slow
	for isa in AVX2 SSE2; do $(PYTHON) -m pytest -n auto --isa=$$isa tests/backends || exit 1; done

bless: ## Rewrite the expected outputs that tests compare exactly
	$(PYTHON) -m pytest --bless tests

docs: ## Check that the documents agree with the code
	$(PYTHON) -m pytest -q tests/test_docs.py

site: ## Make a site of the documents and the reference: docs/_site/index.html
	$(PYTHON) -m sphinx --fail-on-warning --keep-going -q -d docs/_site/.doctrees docs docs/_site

bench: ## Run the benchmarks (alone on the machine, please)
	$(PYTHON) tests/benchmarks/run.py
