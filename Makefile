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

# Facts are true on any machine; `measured` tests judge times and rates, and are `make measure`'s.
FACTS := not measured and not thorough and not gpu
# Facts run beside each other, one more than there are cores: many wait for processes they started.
# Long modules come first (tests/conftest.py), so that none is begun when the others end.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
BESIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -m
# SHARD=3/8: of the thorough tests only the fourth of eight parts.
SHARD ?= 0/1
FUZZ_S ?= 600
ATHERIS := 3.0.0

.PHONY: help install quickstart test facts lint format
.PHONY: control-plane test-kubernetes test-slow test-thorough measure planted ci-tests test-gpu bench fuzz compiled lock clean clean-caches

help:  ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 17

install: $(STAMP)  ## Make .venv with everything in requirements/all.lock

$(STAMP): $(LOCKS) pyproject.toml
	@sh scripts/install $(PYTHON)
	@touch $(STAMP)

quickstart: install  ## Run the quickstart experiment on an emulated cluster
	@$(BIN)/broadgauge run quickstart

test: lint facts  ## Run every test that needs no GPU and little time

facts: install  ## The same without lint
	@$(BIN)/python -m pytest $(BESIDE) "not slow and $(FACTS)"

lint: install  ## Check style, types and the one-way imports
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: install  ## Mend style
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

control-plane:  ## Build Kubernetes for its tests, into a cache outside the checkout: minutes, once
	@$(PYTHON) scripts/control_plane build

test-kubernetes: install control-plane  ## Run the tests against a real API server
	@$(BIN)/python -m pytest tests/kubernetes -m "$(FACTS)"

test-slow: install  ## Run the slow tests: real runs end to end, ranks that train
	@$(BIN)/python -m pytest $(BESIDE) "slow and $(FACTS)"

test-thorough: install  ## Run simulations and every kill; a part of them: SHARD=n/8
	@BROADGAUGE_ALL_EXAMPLES=1 $(BIN)/python -m pytest $(BESIDE) "(thorough or costly) and not measured and not gpu" --shard $(SHARD)

measure: install  ## Judge times and rates: on a quiet machine, since others change them
	@$(BIN)/python -m pytest -m "measured and not gpu" --repeats-s 600

planted: install  ## Plant ten faults in a scratch clone: does a named test turn red for each?
	@$(BIN)/python scripts/planted_faults.py

ci-tests: install  ## What .ci/run does beside lint: all facts, slow ones too
	@$(BIN)/python -m compileall -q -j 0 src
	@$(BIN)/python -m pytest $(BESIDE) "$(FACTS)" --ledger

test-gpu: install  ## Run the tests that need two NVIDIA GPUs
	@$(BIN)/python -m pytest -m gpu

bench: install  ## Time what should stay fast: start-up, statistics, the report; the slowest tests
	@$(BIN)/python scripts/bench.py

compiled: install  ## Make the JSON copies of the catalog and of doctor's rules, after an edit of the YAML
	@$(BIN)/python -m broadgauge.catalog.compiling
	@$(BIN)/python -m broadgauge.doctor.log.compiling

# Its environment is its own: atheris is made for few versions of Python.
fuzz: install  ## Search for logs that the reader falls over, FUZZ_S=600 seconds long
	@[ -x .fuzz/venv/bin/python ] || $(BIN)/python -m venv .fuzz/venv
	@$(BIN)/uv pip sync --quiet --python .fuzz/venv/bin/python --require-hashes requirements/light.lock
	@$(BIN)/uv pip install --quiet --python .fuzz/venv/bin/python --no-deps atheris==$(ATHERIS)
	@PYTHONPATH=src .fuzz/venv/bin/python scripts/fuzz_log_reader.py --seconds $(FUZZ_S)
	@$(BIN)/python scripts/fuzz_log_reader.py --keep

lock: install  ## Resolve the dependencies anew; needs the package index
	@sh scripts/lock

clean:  ## Remove .venv and the checkers' caches; runs/ stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# BROADGAUGE_CACHE may name a folder of many things: a set is known by its set.json.
clean-caches:  ## Remove what is ours in ~/.cache and BROADGAUGE_CACHE: what tests keep, your prepared sets
	@rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/broadgauge"
	@if [ -n "$$BROADGAUGE_CACHE" ]; then \
		for set in "$$BROADGAUGE_CACHE"/data/*/set.json; do rm -rf "$${set%/*}"; done; \
		rm -rf "$$BROADGAUGE_CACHE"/data/.*.part-* "$$BROADGAUGE_CACHE/control-plane" \
			"$$BROADGAUGE_CACHE"/images/bookworm-*.tar; \
		rmdir "$$BROADGAUGE_CACHE/data" "$$BROADGAUGE_CACHE/images" 2>/dev/null || true; \
	fi
