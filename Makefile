# Needs python3.11+ and make, nothing else: the first target run builds .venv.
PYTHON ?= python3
BIN := .venv/bin

# Beside a checkout with real data sets, use them; elsewhere $JULE_DATA says where they are.
ifneq ($(wildcard ../shared/data),)
export JULE_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test browser format reproduce bench torture docs clean

help:            ## this list
	@grep -E "^[a-z]+:.*##" $(MAKEFILE_LIST) | sed -E "s/:[^#]*## */\t/" | expand -t 14

demo: .venv/ready   ## cluster real handwritten digits, in a minute
	$(BIN)/jule demo

test: .venv/ready browser   ## linters, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal

browser:         ## a browser for the tests of the page; installed where we are root on Debian
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		echo "installing chromium for the tests of the page"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null && exit 0; \
	fi; \
	echo "no browser was found: the tests of the page will be skipped; install chromium to run them"

format: .venv/ready   ## format the source
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reproduce: .venv/ready   ## every experiment of the paper that results/ lacks (needs JULE_DATA); hours
	$(BIN)/jule reproduce all

bench: .venv/bench   ## speed, memory and growth against peers; hours
	$(BIN)/python -m benchmarks

torture: .venv/ready   ## kills, damaged files, hostile input: try to break everything; hours
	$(BIN)/python -m torture

docs: .venv/ready   ## write the figures of results/ into README and docs
	$(BIN)/jule reproduce tables
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m torture.tables

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'python 3.11 or newer is needed; set PYTHON=...')"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

.venv/bench: .venv/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,benchmark]"
	touch $@

clean:           ## remove what was built
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
