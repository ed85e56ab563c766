# Needs Python 3.11+, make and a package index; uv is fetched into .uv/ where it is not installed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
# A change of the lock or of the project brings the environment up to date.
READY := .venv/.ready
RUN := .venv/bin/
TESTS ?=
# Tests wait for servers, browsers and clusters: more workers than processors keep these busy.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: help setup demo test test-all wheel faults fuzz mutants soak check lint types audit release format docs bench clean

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY) ## Set up the environment in .venv

.uv/bin/uv:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@# Python of Debian and Ubuntu comes without pip; with python3-venv an environment has its own.
	@if python3 -m pip --version >/dev/null 2>&1; then \
	  python3 -m pip install --quiet --disable-pip-version-check --target .uv uv; \
	elif python3 -m venv .uv/pip; then \
	  .uv/pip/bin/pip install --quiet --disable-pip-version-check --target .uv uv; \
	else \
	  echo "Python has no pip here. Install uv (https://docs.astral.sh/uv) or your system's package python3-venv, then run make again." >&2; exit 1; \
	fi

$(READY): pyproject.toml uv.lock | $(filter .uv/%,$(UV))
	@# Where Python is told to keep no bytecode, it is compiled once here, or every command compiles it
	@# again. Elsewhere Python keeps it itself, and only that of what is imported.
	$(UV) sync --locked --quiet $(if $(PYTHONDONTWRITEBYTECODE),--compile-bytecode)
	@touch $@

demo: $(READY) ## Write the report of a sample story, judged by the embedded model
	@rm -rf demo
	$(RUN)fabula reference build examples/library --out demo/library.ref
	$(RUN)fabula report examples/the-count.txt --reference demo/library.ref --model local --style verdict-first --samples 2 --out demo/the-count.html
	@echo; echo "Open demo/the-count.html in a browser."

test: $(READY) ## Run the tests of all that a change can break (nine minutes); build/timings.txt says which were slow
	@# Bytecode is kept, where Python is told to keep none too: or each worker compiles all tests.
	$(RUN)python -m compileall -q src
	PYTHONDONTWRITEBYTECODE= $(RUN)pytest -n $(WORKERS) --durations 20 --timings=build/timings.txt $(or $(TESTS),-m "not long and not browser")

test-all: $(READY) ## Run all tests: also browsers, Ray, PostgreSQL, benches, the whole manual, long faults (half an hour)
	$(MAKE) test TESTS="tests $(if $(WITHIN),--within $(WITHIN))"

wheel: $(READY) ## Build the wheel, dist/fabula-0.1.0-py3-none-any.whl
	$(UV) build --quiet --wheel

faults: $(READY) ## Kill long jobs a thousand times, and compare what they leave (half an hour)
	FABULA_FAULTS=80 $(RUN)pytest -n $(WORKERS) tests/faults

fuzz: $(READY) ## Give every parser damaged and hostile input (half an hour)
	$(RUN)python bench/fuzz.py --seconds 30 --keep build/fuzz

mutants: $(READY) ## Change statistics, kernels and measures in small ways, and see tests fail (an hour)
	$(RUN)python bench/mutants.py

soak: $(READY) ## Load desk, study and service for half an hour, with restarts
	$(RUN)python bench/soak.py --minutes 30

audit: $(READY) ## List all components, and ask whether any is known to be vulnerable
	$(RUN)python bench/audit.py --uv $(UV)

# CI builds both and checks what they say of themselves; here the unpacked release is tested too.
release: $(READY) audit ## Build the release, and run the tests of the unpacked source (half an hour)
	@rm -rf dist build/release
	$(UV) build --quiet
	$(UV) tool run --quiet twine check --strict dist/*
	mkdir -p build/release
	tar -xzf dist/fabula-*.tar.gz -C build/release --strip-components 1
	$(MAKE) -C build/release test TESTS='-m "not slow and not browser and not ray"'

check: lint types ## Run the linters and the type checker

lint: $(READY)
	$(RUN)ruff format --check
	$(RUN)ruff check

types: $(READY)
	$(RUN)mypy

format: $(READY) ## Bring the code into its form
	$(RUN)ruff format
	$(RUN)ruff check --fix

docs: $(READY) ## Write the reference of all commands, and build the manual into site/
	$(UV) sync --locked --quiet --inexact --group docs
	@# Whole at once: tests may read it meanwhile.
	@mkdir -p build
	$(RUN)python -m fabula.cli.manual > build/commands.md
	@mv build/commands.md docs/commands.md
	$(RUN)python -m fabula.api > build/__init__.pyi
	@mv build/__init__.pyi src/fabula/__init__.pyi
	$(RUN)python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs site
	@echo "Open site/index.html in a browser."

bench: $(READY) ## Measure speed and memory beside the peer (minutes; needs ../shared/data)
	$(RUN)python bench/build.py
	$(RUN)python bench/search.py
	$(RUN)python bench/scale.py
	$(RUN)python bench/reads.py
	$(RUN)python bench/near.py
	$(RUN)python bench/planted.py
	$(RUN)python bench/chance.py
	$(RUN)python bench/false_alarms.py
	$(RUN)python bench/judge.py
	$(RUN)python bench/wordings.py
	$(RUN)python bench/fluency.py
	$(RUN)python bench/report.py
	$(RUN)python bench/report.py --book
	$(RUN)python bench/study.py
	$(RUN)python bench/places.py
	$(RUN)python bench/serve.py
	$(RUN)python bench/cluster.py
	$(RUN)python bench/lost_nodes.py --minutes 5 --every 1
	$(RUN)python bench/packed.py
	$(RUN)python bench/diversity.py
	$(RUN)python bench/diversity_halves.py
	$(RUN)python bench/diversity_models.py
	$(RUN)python bench/keyness.py
	$(RUN)python bench/rows.py
	$(RUN)python bench/blind_times.py
	$(UV) sync --locked --quiet --inexact --group bench
	$(RUN)python bench/linguistic.py
	$(RUN)python bench/cases.py

clean: ## Remove what was made
	rm -rf .venv .uv demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
