# Every target does its own set-up; a second run reuses the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := .venv-kernels
CORE := .venv-core
# Pinned versions: torch's exact pin picks one build on every machine.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-busy check fast test-kernels smoke matrix soak soak-long coverage licences
.PHONY: docs gallery format clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "giw needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing giw and what it needs (a minute or two, once)"
	@$(PIP) --editable '.[torch]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the developer tools"
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.runtime
	@echo "installing what builds the site"
	@$(PIP) --editable '.[docs]'
	@touch $@

demo: $(VENV)/.runtime  ## GIW beside its simple rivals on two real tables and on digits; writes giw-demo/report.html
	@$(BIN)/giw demo

test: check fast  ## lint, types, every fast test and the README's code

check: $(VENV)/.dev  ## lint, types and words
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python tools/prose.py

fast: $(VENV)/.dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

$(CORE)/.done: pyproject.toml constraints.txt
	@echo "making $(CORE): giw without torch (a minute, once)"
	@$(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt --editable .
	@touch $@

smoke: $(CORE)/.done  ## what works where torch is not installed: tables, weights, splits, diagnosis, commands
	@OMP_NUM_THREADS=1 $(CORE)/bin/python tools/without_torch.py

matrix:  ## the wheel in empty environments of Python 3.11 (oldest and newest dependencies), 3.12 and 3.13; one of them: CELL=3.13
	@$(PYTHON) tools/matrix.py $(CELL)

# Its own environment: Triton is no part of torch for CPU, and 'make test' does without it.
$(KERNELS)/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make test-kernels needs Python 3.11: elsewhere the pinned torch brings 5 GB of CUDA. Name one: make test-kernels PYTHON=python3.11")'
	@echo "making $(KERNELS) with torch for CPU and Triton (300 MB, once)"
	@$(PYTHON) -m venv $(KERNELS)
	@$(KERNELS)/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt --editable '.[torch]' pytest hypothesis
	@$(KERNELS)/bin/python -m pip --disable-pip-version-check install -qq --no-deps triton==3.9.0
	@touch $@

test-kernels: $(KERNELS)/.done  ## Triton kernels against torch, in Triton's interpreter: no GPU (Python 3.11)
	@TRITON_INTERPRET=1 OMP_NUM_THREADS=1 $(KERNELS)/bin/python -m pytest -m kernels tests/nets/kernels

test-busy: $(VENV)/.dev  ## the same three times in a row beside four busy processes
	@MAKE="$(MAKE)" tools/busy.sh

docs: $(VENV)/.docs  ## the documentation as a site in site/, which opens from the disk
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

gallery: $(VENV)/.docs  ## run the programs of examples/ and write their pages in docs/gallery
	@$(PIP) --editable '.[loops]'
	@$(BIN)/python tools/site/gallery.py

soak: $(VENV)/.dev  ## kill work, fill disks and spoil files; counts and losses, see docs/reliability.md
	@PYTHONPATH=src $(BIN)/python -m tests.soak

soak-long: $(VENV)/.dev  ## the same with new seeds for two hours; the counts are kept in tests/soak/counts.csv
	@PYTHONPATH=src $(BIN)/python -m tests.soak --minutes 120 --seed $$(date +%s) --record

coverage: $(VENV)/.dev  ## lines and branches that the fast tests run; fails below the floor in pyproject.toml
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --cov=giw --cov-branch --cov-report=term

licences: $(VENV)/.dev  ## licences of all that giw and its extras bring; exit code 1 where one is unknown
	@$(BIN)/python tools/licences.py

format: $(VENV)/.dev  ## rewrite the code in the house format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(KERNELS) $(CORE) .venv-matrix .pytest_cache .mypy_cache .ruff_cache .hypothesis giw-demo site
