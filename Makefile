# Each target sets up everything it needs in .venv; only Python 3.11+ must be there.
# A stamp file skips the set-up while pyproject.toml and uv.lock are unchanged.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_CORE := $(VENV)/.ready-core
READY_BENCH := $(VENV)/.ready-bench
READY_SITE := $(VENV)/.ready-site

PORT ?= 8787
PYTEST_WORKERS ?= auto
FUZZ_SECONDS ?= 600
HARDEN_SECONDS ?=
MUTATE_SAMPLE ?= 200
ARGS ?=

# Where it is set, every process of the tests would compile the package and its tests anew: half of
# the time that each worker of `make test` takes to collect, and of each `holdfast` that it starts.
unexport PYTHONDONTWRITEBYTECODE

# What may differ from one Python to another: imports, parsers, SQLite, processes, the event loop.
PROFILE := tests/test_imports.py tests/test_public_api.py \
	$(addprefix tests/wire/,test_round_trip.py test_long_strings.py) \
	$(addprefix tests/wire/responses/,test_whole.py test_sse.py) tests/tokens \
	$(addprefix tests/fitting/,test_batch.py test_citing.py test_tool_offers.py test_policy.py) \
	tests/store/test_sqlite.py \
	$(addprefix tests/surfaces/cli/,test_count.py test_process.py) \
	$(addprefix tests/surfaces/proxy/,test_dashboard.py test_draining.py test_server.py)

HARDENING := tests/hardening tests/researching tests/store/test_crash.py tests/store/test_postgres_crash.py

.DEFAULT_GOAL := help
.PHONY: help run test pythons browser clients mcp check format docs site bench worse judge fuzz harden mutate scopes dist lock clean

help: ## show this help
	@echo "Holdfast: every call fits; nothing is lost."
	@echo
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '%-16s%s\n' "$$name" "$$text"; done
	@echo
	@echo "New here? 'make run' starts the proxy, '$(BIN)/holdfast tour' shows more; then read README.md."

run: $(READY_CORE) ## start the proxy; needs no key (sets itself up; PORT=8787)
	@$(BIN)/holdfast serve --port $(PORT)

test: $(READY) ## run all tests (ARGS="-k settings" narrows them)
	@$(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(ARGS)

pythons: $(READY) ## run a short profile of the tests on every other supported Python that is here
	@tools/pythons $(PROFILE) $(ARGS)

browser: $(READY) ## try the dashboard in a Chromium (from npm where there is none) and with axe-core
	@tools/browser
	@$(BIN)/python -m pytest -q -n 0 tests/surfaces/proxy/test_dashboard_browser.py tests/surfaces/proxy/test_dashboard_tasks.py $(ARGS)

mcp: $(READY) ## run real MCP servers, hosts and the conformance suite, from npm and PyPI (ARGS="servers suite hosts")
	@$(BIN)/python -W ignore -m tests.servers $(ARGS)

clients: $(READY) ## run coding agents from npm and PyPI through the proxy (ARGS="claude codex")
	@$(BIN)/python -W ignore -m tests.clients $(ARGS)

check: $(READY) ## lint, types, import contracts, effort in calls, readability, documentation
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m benchmarks.effort --check
	@$(BIN)/python tools/readability.py --check
	@$(BIN)/python -m pytest -q tests/docs

format: $(READY) ## format the code and apply safe lint fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY) ## rewrite the files in docs that are made from the code
	@$(BIN)/python docs/generate.py

site: $(READY_SITE) ## build the documentation as a site in build/site, strictly
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

bench: $(READY_BENCH) ## print the benchmarks beside their peers, what fell; docs/benchmarks.md (ARGS="count fit", --save)
	@$(BIN)/python -m benchmarks $(ARGS)

worse: $(READY_BENCH) ## replay all recorded sessions: none may cost more than 1.01 of untouched (ARGS="--every 10")
	@$(BIN)/python -m benchmarks worse --jobs 2 $(ARGS)

judge: $(READY) ## let a real small model answer through the proxy (ARGS="--quick"; docs/discussions/judge.md)
	@$(BIN)/python -m benchmarks.judge $(ARGS)

fuzz: $(READY) ## run the long fuzzing campaign (FUZZ_SECONDS=600)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest tests --ignore tests/hardening -m campaign $(ARGS)

harden: $(READY) ## run all hardening campaigns in full, with a table (HARDEN_SECONDS=60 shortens each)
	@HARDEN_SECONDS=$(HARDEN_SECONDS) $(BIN)/python -m pytest $(HARDENING) -m campaign $(ARGS)

mutate: $(READY) ## put faults into the code and list those that no test notices (MUTATE_SAMPLE=200, 0: all)
	@$(BIN)/python tools/mutate.py --sample $(MUTATE_SAMPLE) $(ARGS)

scopes: $(READY) ## drop each scope condition of the stores' SQL; a test must notice each
	@$(BIN)/python tools/mutate_sql.py $(ARGS)

dist: $(READY) ## build the wheel, and try it, each extra and the steps of the image alone
	@$(BIN)/python -m hatchling build
	@$(BIN)/python -m pytest -m "slow or campaign" tests/surfaces/test_wheel.py tests/surfaces/test_deploy.py $(ARGS)

lock: ## bring uv.lock up to date with pyproject.toml
	@tools/setup lock

clean: ## remove everything that was generated, .venv included
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml uv.lock tools/setup
	@tools/setup
	@touch $@

# Where all is set up, there is nothing to add, and nothing may be taken away.
$(READY_CORE): pyproject.toml uv.lock tools/setup
	@if [ -e $(READY) ]; then $(MAKE) --no-print-directory $(READY); else tools/setup --core; fi
	@touch $@

$(READY_BENCH): $(READY)
	@tools/setup --group bench
	@touch $@

$(READY_SITE): $(READY)
	@tools/setup --group site
	@touch $@
