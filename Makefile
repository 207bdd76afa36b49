# Each target sets itself up. Needs python 3.11 or newer with pip and venv, make and git; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Files whose digest is not in the lock are refused; the project itself is built with what the lock has installed.
LOCKED = $(PIP) --require-hashes --no-deps -r requirements/$(1).txt && $(PIP) --no-deps --no-build-isolation -e .
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# One more than there are processors: tests wait a good part of their time.
WORKERS ?= $(shell n=$$(($(CORES) + 1)); [ $$n -gt 4 ] && n=4; echo $$n)
TESTS ?= tests
# Compiled from proto/ and not committed. An install with grpcio-tools makes it; this rule makes it again when proto/ changes.
GRPC := src/palyra/v1/__init__.py

.DEFAULT_GOAL := help
.PHONY: help run grpc prepare test quick check compat console screenshots bench bench-memory test-model wheel clean

help:
	@echo "make run     start palyra: a chat on a terminal, a server otherwise"
	@echo "make grpc    install what the gRPC server needs (palyra up --grpc)"
	@echo "make test    run the tests (TESTS=tests/unit for some of them)"
	@echo "make quick   run the tests of the spine, in less than a minute"
	@echo "make check   format, lint, types, layers"
	@echo "make compat  try the MCP servers that people use, from npm and PyPI"
	@echo "make console build the web console"
	@echo "make screenshots   take pictures of every page of the console, for docs"
	@echo "make bench   run the benchmarks"
	@echo "make bench-memory   how well and how fast memory is searched"
	@echo "make test-model   how many of twenty small tasks a real model does"
	@echo "make wheel   build the wheel into dist/, install it elsewhere and try it"
	@echo "make clean   remove everything that was built"

run: $(VENV)/.runs
	@$(BIN)/python scripts/console.py --if-possible
	@exec $(BIN)/palyra up

grpc: $(VENV)/.grpc

# What only the tests need besides packages. Each script fetches its own part: they wait for the network, so they wait together.
prepare: $(VENV)/.browses $(GRPC)
	@{ $(BIN)/python scripts/console.py || echo "warning: without it tests/console fails"; } & \
	{ $(BIN)/python scripts/synapse.py || echo "warning: without it the tests of the Matrix channel fail"; } & \
	{ $(BIN)/python scripts/tlog_reader.py || echo "warning: without it tests/contract/proof/test_go_reader.py fails"; } & \
	{ $(BIN)/python scripts/openai_clients.py || echo "warning: without it tests/e2e/openai_api/test_programs.py fails"; } & \
	{ $(BIN)/python scripts/conformance.py || echo "warning: without it tests/contract/mcp/test_conformance.py and test_mcp_server_conformance.py fail"; \
	$(BIN)/python scripts/mcp_inspector.py || echo "warning: without it tests/e2e/mcp_server/test_clients.py fails"; \
	$(BIN)/python scripts/slack_emulator.py || echo "warning: without it tests/contract/channels/test_slack_emulator.py fails"; } & \
	wait

test: prepare
	$(BIN)/python scripts/run_tests.py -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(TESTS)

# The spine: run states, the fold, the journal, runs, tool calls, the doors, one crash. Needs nothing that `prepare` fetches.
quick: $(VENV)/.develops $(GRPC)
	$(BIN)/python -m pytest -n $(CORES) --dist loadscope --no-loadscope-reorder @tests/quick.txt

check: $(VENV)/.develops $(GRPC)
	$(BIN)/ruff format --check src tests bench scripts
	$(BIN)/ruff check src tests bench scripts
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

# Each server is installed from the registries of this machine and called in a run; writes the table in docs/reference/mcp.md.
compat: $(VENV)/.develops $(GRPC)
	$(BIN)/python scripts/mcp_compat.py --write

console: $(VENV)/.runs
	@$(BIN)/python scripts/console.py

screenshots: $(VENV)/.browses
	@$(BIN)/python scripts/console.py
	@$(BIN)/python scripts/screenshots.py

bench: $(VENV)/.develops $(GRPC)
	$(BIN)/python -m bench $(BENCH)

bench-memory: $(VENV)/.develops
	$(BIN)/python -m bench memory_quality memory_speed

# Twenty small tasks for a real model: one from the package index, MODEL=file.gguf, or SERVER=address of a running one with NAME=model.
test-model: $(VENV)/.develops $(GRPC)
	$(BIN)/python scripts/model_tasks.py --model "$(MODEL)" --server "$(SERVER)" --name "$(NAME)" $(if $(WINDOW),--window $(WINDOW)) $(if $(TOOLS),--tools $(TOOLS))

# Built twice and compared; tried in an empty environment, where it stands alone.
wheel: $(VENV)/.develops $(GRPC)
	$(BIN)/python scripts/try_wheel.py --keep dist

clean:
	rm -rf $(VENV) console/node_modules src/palyra/console src/palyra/v1 build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "error: $(PYTHON) is missing or older than python 3.11: install it, or name another with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "error: this python cannot make virtual environments: install its venv package (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runs: $(VENV)/.made pyproject.toml setup.py requirements/run.txt
	@echo "installing palyra and what it needs to run (the first time takes about a minute)"
	@$(call LOCKED,run)
	@touch $@

$(VENV)/.grpc: $(VENV)/.runs requirements/grpc.txt $(wildcard proto/palyra/v1/*.proto)
	@echo "installing what the gRPC server needs"
	@$(call LOCKED,grpc)
	@touch $@

$(VENV)/.develops: $(VENV)/.made pyproject.toml setup.py requirements/dev.txt
	@echo "installing palyra and what its development needs (the first time takes about two minutes)"
	@$(call LOCKED,dev)
	@touch $(VENV)/.runs $@

$(GRPC): scripts/proto_code.py $(wildcard proto/palyra/v1/*.proto) | $(VENV)/.develops
	@$(BIN)/python scripts/proto_code.py

# The tests of the browser tools need a Chromium: a package of the system, or Playwright's own download. Those of the console also run in a Firefox and a WebKit, if they are there.
$(VENV)/.browses: $(VENV)/.develops
	@$(BIN)/python scripts/chromium.py
	@$(BIN)/python scripts/other_browsers.py
	@touch $@
