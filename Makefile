# Needs Python 3.11 or newer and make. Every target sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow lint smoke docs bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/demo-installed  ## the paper's four data sets, adapted; writes demo-output/
	$(BIN)/covshift demo --out demo-output

test: .venv/dev-installed  ## the whole suite but the tests marked slow
	$(BIN)/python -m pytest -n auto -m "not slow" --cov --cov-report=term

test-slow: .venv/dev-installed  ## the long statistical tests as well
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: .venv/dev-installed  ## style and types
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m codespell_lib

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

clean:  ## remove what the other targets made
	rm -rf .venv dist demo-output bench-output docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("covshift needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/demo-installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,report]'
	@touch $@

.venv/dev-installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

.venv/docs-installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@
