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

# Tests that measure nothing run beside each other, as many as there are cores; the others alone.
FAST := not gpu and not slow and not thorough and not kubernetes and not skypilot and not storage
BESIDE := -n auto --dist loadfile -m
# SHARD=3/8: of the thorough tests only the fourth of eight parts.
SHARD ?= 0/1
FUZZ_S ?= 600
OUT ?= runs/frameworks
ATHERIS := 3.0.0

.PHONY: help install quickstart test test-beside test-alone lint format
.PHONY: test-slow slow-beside slow-alone test-thorough thorough-beside thorough-alone ci-beside ci-alone ci-kubernetes
.PHONY: skypilot-env test-skypilot
.PHONY: control-plane test-kubernetes storage-tools test-storage ci-storage test-gpu gpu-frameworks gpu-checkpoints bench fuzz compiled lock clean

help:  ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 16

install: $(STAMP)  ## Make .venv with everything in requirements/all.lock

$(STAMP): $(LOCKS) pyproject.toml
	@sh scripts/install $(PYTHON)
	@touch $(STAMP)

quickstart: install  ## Run the quickstart experiment on an emulated cluster
	@$(BIN)/broadgauge run quickstart

test: lint test-beside test-alone  ## Run every test that needs no GPU and little time

test-beside: install  ## Of these, run those that may run beside each other
	@$(BIN)/python -m pytest $(BESIDE) "not alone and $(FAST)"

test-alone: install  ## Of these, run those that judge times or start many processes
	@$(BIN)/python -m pytest -m "alone and $(FAST)" --repeats-s 60

lint: install  ## Check style, types and the one-way imports
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: install  ## Mend style
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

test-slow: slow-beside slow-alone  ## Run the slow tests: real runs end to end, ranks that train

slow-beside: install
	@$(BIN)/python -m pytest $(BESIDE) "slow and not alone and not thorough and not gpu"

slow-alone: install
	@$(BIN)/python -m pytest -m "slow and alone and not thorough and not gpu and not kubernetes and not storage" --repeats-s 180

test-thorough: thorough-beside thorough-alone  ## Run simulations, every kill and rate; CI does SHARD=n/8

thorough-beside: install
	@$(BIN)/python -m pytest $(BESIDE) "thorough and not alone and not gpu" --shard $(SHARD)

thorough-alone: install
	@$(BIN)/python -m pytest -m "thorough and alone and not gpu and not kubernetes and not storage" --shard $(SHARD) --repeats-s 60

# What .ci/run does: as the targets above, in two sessions instead of six.
ci-beside: install
	@$(BIN)/python -m pytest $(BESIDE) "not alone and not gpu" --shard $(SHARD)

ci-alone: install
	@$(BIN)/python -m pytest -m "alone and not gpu and not kubernetes and not skypilot and not storage" --shard $(SHARD) --repeats-s 500

ci-kubernetes: install
	@$(BIN)/python -m pytest -m "kubernetes and not gpu" --shard $(SHARD) --repeats-s 180

control-plane:  ## Build what test-kubernetes needs into a cache outside the checkout
	@$(PYTHON) scripts/control_plane build

test-kubernetes: install control-plane  ## Run the tests on a real Kubernetes control plane
	@$(BIN)/python -m pytest -m "kubernetes and not gpu" --repeats-s 180

skypilot-env:  ## Install what test-skypilot needs into a cache outside the checkout
	@scripts/skypilot_env >/dev/null

test-skypilot: install skypilot-env  ## Hold what SkyPilot is given against SkyPilot itself
	@$(BIN)/python -m pytest -m "skypilot and not gpu"

storage-tools:  ## Build what test-storage needs into a cache outside the checkout
	@$(PYTHON) scripts/storage_tools build

test-storage: install storage-tools  ## Run the tests on storages: an S3 server, mounts, disks
	@$(BIN)/python -m pytest -m "storage and not gpu" --repeats-s 60

ci-storage: install
	@$(BIN)/python -m pytest -m "storage and not gpu" --shard $(SHARD) --repeats-s 60

test-gpu: install  ## Run the tests that need two NVIDIA GPUs
	@$(BIN)/python -m pytest -m gpu

gpu-frameworks: install  ## Run the articles' frameworks on two NVIDIA GPUs, into OUT=runs/frameworks
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/gpu-frameworks $(OUT)

gpu-checkpoints: OUT = runs/checkpoints
gpu-checkpoints: install  ## Checkpoints of a training on two NVIDIA GPUs, into OUT=runs/checkpoints
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/gpu-checkpoints $(OUT)

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
