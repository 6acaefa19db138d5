# Everything goes through make. Each target works on a fresh clone and says what it does.
.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO_STAMP := $(VENV)/.ready-for-demo
EXTRAS_OFFLINE ?= cli
EXTRAS := cli,parquet,excel,sql,web,report,accounting
NATIVE := src/keepsum/sampling/native
SPARK_VENV := .venv-spark
SPARK_STAMP := $(SPARK_VENV)/.ready
# Tests that need an outside service skip without it; a service named here must be there (CI names them all).
KEEPSUM_REQUIRE ?=
export KEEPSUM_REQUIRE

.PHONY: help setup setup-spark kernels wheel offline test audit exhaustive audit-spark lint demo app examples bench bench-spark convergence fibres paper clean services java r-language

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with every extra but spark, and the development tools

$(STAMP): pyproject.toml constraints.txt scripts/make-venv
	@scripts/make-venv "$(PYTHON)" "$(VENV)" "$(EXTRAS)"
	@touch $(DEMO_STAMP) $@

$(DEMO_STAMP): pyproject.toml constraints.txt scripts/make-venv
	@scripts/make-venv "$(PYTHON)" "$(VENV)"
	@touch $@

# The kernels in C are compiled by the installation. Each library carries a hash of its sources, which is compared here.
kernels:  ## compile the kernels, if a file in C has changed since
	@if [ -x $(BIN)/python ]; then $(BIN)/python $(NATIVE)/build.py; else "$(PYTHON)" $(NATIVE)/build.py; fi

wheel: $(STAMP) kernels  ## make an sdist and a wheel of this platform, for every Python, into dist
	@rm -rf dist
	@$(BIN)/python -m hatchling build
	@ls dist

offline: wheel  ## put Keepsum and what it needs into dist/offline, to install where there is no network (EXTRAS_OFFLINE=cli)
	@scripts/offline $(BIN)/python dist/keepsum-*.whl dist/offline $(EXTRAS_OFFLINE)

setup-spark: $(SPARK_STAMP)  ## make .venv-spark with the extra spark and what its tests need

$(SPARK_STAMP): pyproject.toml constraints.txt constraints-spark.txt scripts/make-venv
	@scripts/make-venv "$(PYTHON)" "$(SPARK_VENV)" cli,spark spark-dev constraints-spark.txt
	@touch $@

services:
	@scripts/get-services chromium postgresql

java:
	@scripts/get-services java r-language

r-language:
	@scripts/get-services r

test: $(STAMP) kernels services  ## run the tests, some 25 minutes of CPU (fetches Debian's chromium and postgresql first when run as root)
	@echo "keepsum: running the tests"
	@$(BIN)/python -m pytest -n 2 -q -m "not audit and not exhaustive" --durations=10 --durations-min=5

audit: $(STAMP) kernels services r-language audit-spark  ## run the tests that take long: in Spark and R, large tables, full grids, the paper in little
	@echo "keepsum: running the long tests"
	@$(BIN)/python -m pytest -n 2 -q -m "audit and not exhaustive" --durations=10 --durations-min=5

exhaustive: $(STAMP) kernels services  ## run the cases that CI leaves out, into experiments/out/exhaustive.txt with the date
	@echo "keepsum: running the cases that make test and make audit leave out"
	@mkdir -p experiments/out && { date -u +%F; git rev-parse HEAD; } >experiments/out/exhaustive.txt
	@$(BIN)/python -m pytest -n 2 -q -m "exhaustive" >>experiments/out/exhaustive.txt; status=$$?; \
		tail -n 20 experiments/out/exhaustive.txt; exit $$status

audit-spark: $(SPARK_STAMP) kernels java  ## run the tests in Spark, on clusters of this machine (fetches Debian's Java first when run as root)
	@echo "keepsum: running the tests in Spark"
	@$(SPARK_VENV)/bin/python -m pytest -q tests/spark --durations=10 --durations-min=5

lint: $(STAMP)  ## style (ruff) and types (mypy, strict)
	@echo "keepsum: checking style and types"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

demo: $(DEMO_STAMP) kernels  ## release a small table with its margins kept, verify it, and catch a change (half a minute at first)
	@env -u PYTHONDONTWRITEBYTECODE PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo

app: $(STAMP) kernels  ## open the page in the browser: from a table to a verified release (Ctrl-C ends it)
	@$(BIN)/keepsum app

examples: $(STAMP) kernels  ## write the made-up files that the pages and every --help use, into examples/files
	@$(BIN)/python examples/files.py examples/files
	@echo "keepsum: the files are in examples/files"

bench: $(STAMP) kernels  ## measure speed and memory against peers, under 12 minutes (QUICK=1 under 2), into benchmarks/out
	@$(BIN)/python -m benchmarks.run

bench-spark: $(SPARK_STAMP) kernels java  ## measure releases through Spark, 10^7 and 10^8 cells, into benchmarks/out (CELLS=6,7 for less)
	@$(SPARK_VENV)/bin/python -m benchmarks.spark

convergence: $(STAMP) kernels  ## measure the convergence of the general sampler's chains (minutes; resumes if stopped)
	@$(BIN)/python -m benchmarks.convergence

fibres: $(STAMP) kernels  ## compare 10,000 random fibres with what is stated of one person, into experiments/out/fibres.md (SEED=, FIBRES=)
	@$(BIN)/python -m experiments.fibres

paper: $(STAMP) kernels  ## reproduce the paper into experiments/out (QUICK=1, COUNTIES=file, DAS=file, OUT=folder)
	@$(BIN)/python -m experiments.run

clean:  ## remove .venv and everything generated
	@echo "keepsum: removing .venv, .venv-spark and caches"
	@rm -rf $(VENV) $(SPARK_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/out experiments/out/cache examples/files dist build $(NATIVE)/built
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
