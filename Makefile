# Needs Python 3.11 or newer and make. Every target sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin

# Tests on real data run where COVSHIFT_DATA names a folder, or where one lies beside the checkout.
COVSHIFT_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(COVSHIFT_DATA),)
export COVSHIFT_DATA
endif

# Of every random choice in test-all and test-sample.
SEED ?= 0

.PHONY: help demo test coverage test-slow test-torch test-all test-sample lint smoke docs bench sbom release-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: .venv/demo-installed  ## the paper's four data sets, adapted; writes demo-output/
	$(BIN)/covshift demo --out demo-output

test: .venv/dev-installed  ## the whole suite but the tests marked slow
	$(BIN)/python -m pytest -n auto -m "not slow"

# Apart, since measuring doubles the processor time of the suite.
coverage: .venv/dev-installed  ## the same with the lines and branches that the suite runs
	$(BIN)/python -m pytest -n auto -m "not slow" --cov --cov-report=term

test-slow: .venv/dev-installed  ## the long statistical tests as well
	$(BIN)/python -m pytest -n auto

# In an environment of its own: where PyTorch cannot be installed, nothing else suffers.
test-torch: .venv/dev-installed  ## tests on PyTorch's processor arrays, where it can be installed
	$(BIN)/python hardening/environments.py torch --if-available

# Two to three hours on two cores. Each line can be run alone; the scripts say how.
test-all: .venv/dev-installed test-slow  ## also lowest versions, every Python, torch, kills, faults
	$(BIN)/python hardening/environments.py floors
	$(BIN)/python hardening/environments.py pythons
	$(BIN)/python hardening/environments.py torch
	$(BIN)/python hardening/thread_storm.py --seed $(SEED)
	$(BIN)/python hardening/kill_and_resume.py --seed $(SEED)
	$(BIN)/python hardening/kill_monitors.py --seed $(SEED)
	$(BIN)/python hardening/extremes.py
	$(BIN)/python hardening/fuzz.py --seed $(SEED) --minutes 10 --out hardening-output/fuzz.json
	$(BIN)/python hardening/mutate.py --seed $(SEED) --count 600 --out hardening-output/mutants

# Of a few mutants the share says little: the sample shows that the machinery works.
test-sample: .venv/dev-installed  ## a few minutes of what test-all does
	$(BIN)/python hardening/thread_storm.py --seed $(SEED) --rounds 1 --estimators 8 --threads 4
	$(BIN)/python hardening/kill_and_resume.py --seed $(SEED) --trials 1 --kills 1
	$(BIN)/python hardening/extremes.py --only nul-bytes
	$(BIN)/python hardening/fuzz.py --seed $(SEED) --cases 400 --minutes 4
	rm -rf hardening-output/sample bench-output/quick.jsonl
	$(BIN)/covshift-bench run --quick --made-up 1 --jobs 2 --out bench-output/quick.jsonl \
		--tasks "made up: no_shift*" "made up: shift_and_scale*" "made up: groups*"
	$(BIN)/python hardening/mutate.py --seed $(SEED) --count 10 --by-name --minutes 2 --at-least 0 \
		--out hardening-output/sample

lint: .venv/dev-installed  ## style, types, spelling, plain English
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m codespell_lib
	$(BIN)/python docs/check_prose.py

smoke: .venv/dev-installed  ## the built wheel, in an empty environment, outside this folder
	$(BIN)/python tests/wheel_smoke.py

# Warnings are errors, and so is a link or a name that leads nowhere.
docs: .venv/docs-installed  ## the documentation, its examples run; names the page to open
	$(BIN)/python -m sphinx -q -W --keep-going -n -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html
	@echo "Open $(CURDIR)/docs/_build/html/index.html"

# Those that exist, one after the other: two at once would disturb each other's times.
BENCHMARKS := $(notdir $(basename $(wildcard $(addprefix benchmarks/, $(addsuffix .py, \
	engine study speech_grid growth mmd ks weights alignments autoencoder segment_filters tables \
	table_encoders startup single_row saved_models larger_than_memory cluster)))))

bench: .venv/dev-installed  ## the benchmarks, side by side with the peers; writes bench-output/*.json
	@for name in $(BENCHMARKS); do \
		echo "== $$name"; \
		$(BIN)/python benchmarks/$$name.py --out bench-output/$$name.json || exit 1; \
	done

sbom: .venv/dev-installed  ## the bill of materials of a release; writes dist/covshift.cdx.json
	$(BIN)/python hardening/supply_chain.py sbom --out dist/covshift.cdx.json

release-check: .venv/dev-installed docs  ## archives, metadata, licenses, the wheel on every Python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	$(BIN)/python hardening/release_check.py

clean:  ## remove what the other targets made
	rm -rf .venv .environments dist demo-output bench-output hardening-output docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("covshift needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

# Installing compiles them, where there is a C compiler (docs/engine.md).
export COVSHIFT_COMPILE = 1
KERNELS := hatch_build.py $(wildcard src/covshift/kernels/compiled/*.[ch])

.venv/demo-installed: .venv/bin/python pyproject.toml $(KERNELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,report]'
	@touch $@

.venv/dev-installed: .venv/bin/python pyproject.toml benchmarks/pyproject.toml $(KERNELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e ./benchmarks
	@touch $@

.venv/docs-installed: .venv/bin/python pyproject.toml $(KERNELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
