# Two commands do all the set-up: `make quickstart` and `make test`. Both begin with `install`.
# PYTHON names the interpreter that makes .venv: 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
LOCKS := requirements/uv.lock requirements/all.lock
# Our own: what you keep beside them in the checkout is not checked.
CHECKED := src tests scripts examples
export UV_NO_PROGRESS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some containers set it, and uv compiles nothing: each of the hundreds of processes that the tests
# start would compile what it imports, torch included. Empty, each module is compiled once.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install quickstart test lint format test-slow test-gpu bench lock clean

help:  ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 14

install: $(STAMP)  ## Make .venv with everything in requirements/all.lock

$(STAMP): $(LOCKS) pyproject.toml
	@sh scripts/install $(PYTHON)
	@touch $(STAMP)

quickstart: install  ## Run the quickstart experiment on an emulated cluster
	@$(BIN)/broadgauge run quickstart

test: lint  ## Run every test that needs no GPU and no more than a few minutes
	@$(BIN)/python -m pytest -m "not gpu and not slow"

lint: install  ## Check style, types and the one-way imports
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: install  ## Mend style
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

test-slow: install  ## Run the slow tests: real runs end to end, rates up to 5 Gbit/s, simulations
	@$(BIN)/python -m pytest -m "slow and not gpu" --repeats-s 1500

test-gpu: install  ## Run the tests that need two NVIDIA GPUs
	@$(BIN)/python -m pytest -m gpu

bench: install  ## Time what should stay fast: start-up, statistics, the report
	@$(BIN)/python scripts/bench.py

lock: install  ## Resolve the dependencies anew; needs the package index
	@sh scripts/lock

clean:  ## Remove .venv and the checkers' caches; runs/ stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
