# Needs make and a Python of at least 3.11 with pip and venv; everything else goes into .venv.

PYTHON ?= python3
# Extra arguments for pytest or the benchmarks: make test ARGS="-k grids", make bench ARGS=--quick
ARGS ?=
# The torch that `make constraints` starts from; the rest is what pip then finds.
TORCH ?= 2.13.0

VENV := .venv
BIN := $(VENV)/bin
# Written last, so that an interrupted installation is done again, from an empty .venv.
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo demo-quick test test-slow test-all soak check format format-check lint types bench paper-index evidence docs constraints dist clean

define require-python
@command -v "$(PYTHON)" >/dev/null || \
    { echo "PYTHON must be the name or path of a Python interpreter, not '$(PYTHON)'." >&2; exit 1; }
@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
    { echo "PYTHON must be Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; exit 1; }
@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
    { echo "PYTHON must have the modules venv and ensurepip (on Debian: apt install python3-venv)." >&2; exit 1; }
endef

help: ## list these targets
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.* ## ' '/^[a-z-]+:.* ## / { printf "  %-14s%s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## train PerDQN on MountainCar beside DQN and draw both, into demo/: a minute or two
	@$(BIN)/holdfast demo $(ARGS)

demo-quick: $(INSTALLED) ## the same with tables on a grid, into demo/quick/: half a minute
	@$(BIN)/holdfast demo --quick $(ARGS)

# With EXIT_CODE_FILE the exit code of pytest goes there, because make would turn every failure into its own 2.
PYTEST = $(BIN)/python -m pytest $(1) $(ARGS)$(if $(EXIT_CODE_FILE),; echo $$? >"$(EXIT_CODE_FILE)")

test: $(INSTALLED) ## run the tests that a change has to pass: less than ten minutes on two cores
	@$(call PYTEST,-m "not slow")

test-slow: $(INSTALLED) ## run the tests that `make test` leaves out
	@$(call PYTEST,-m slow)

test-all: test test-slow ## run all tests: less than an hour

soak: $(INSTALLED) ## kill, damage and fuzz runs at random, and train for hours; ARGS="--kills 2 --minutes 0 ..." for less
	@$(BIN)/python -m tests.soak $(ARGS)

check: format-check lint types test ## format check, lint, types and tests, in this order

format: $(INSTALLED) ## format the code and sort its imports
	@$(BIN)/ruff check -q --select I --fix .
	@$(BIN)/ruff format .

format-check: $(INSTALLED) ## say which files `make format` would change
	@$(BIN)/ruff format --check -q --diff .

lint: $(INSTALLED) ## look for mistakes with ruff
	@$(BIN)/ruff check -q .

types: $(INSTALLED) ## check the types with mypy
	@$(BIN)/mypy --no-error-summary

bench: $(INSTALLED) ## run the benchmarks, alone on the machine; ARGS="--quick solve" for less
	@$(BIN)/python -m benchmarks $(ARGS)

paper-index: $(INSTALLED) ## rewrite docs/paper_index.md from the docstrings
	@$(BIN)/python -m tests.paper_page

evidence: $(INSTALLED) ## rewrite the tables and pictures that the documents take from the rows in results/
	@$(BIN)/python -m tests.evidence

docs: $(INSTALLED) ## build the documentation site into build/site, strictly, and look at every link
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -q
	@$(BIN)/python tools/check_site_links.py build/site

constraints: ## find the newest versions of everything and pin them in constraints.txt
	$(require-python)
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" tools/pin-versions

dist: ## build sdist and wheel into dist/, install the wheel into an empty environment and try the verbs there
	$(require-python)
	@PYTHON="$(PYTHON)" tools/build-distribution

clean: ## remove .venv, caches, dist/ and demo/ (runs/ and results/ stay)
	@rm -rf $(VENV) build dist demo .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find $(wildcard src tests benchmarks examples) -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	$(require-python)
	@echo "Installing into $(VENV), about two minutes ..."
	@if test -e $@ && $(BIN)/python -c '' 2>/dev/null; then rm $@; else "$(PYTHON)" -m venv --clear $(VENV); fi
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
