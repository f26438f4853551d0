# specsweep: `make` lists what there is. `make sweep` and `make test` are all that most people need.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
ARGS   ?=

.PHONY: help setup sweep rehearse test unit lint audit check slow ci docs screenshots bench bench-search bench-scale fuzz interleavings nightly chaos ui lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY)  ## create the environment in .venv (about 1.5 minutes, once)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'specsweep needs Python 3.11 or newer; name one with: make setup PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'Python cannot make virtual environments here. On Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo 'Installing the locked dependencies: about 1.5 minutes ...'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib || true
	@touch $(READY)

sweep: $(READY)  ## run the embedded sweep, or go on with it; ARGS='budget.trials=20' adds settings
	$(BIN)/specsweep run $(ARGS)

rehearse: $(READY)  ## the Kimi night over SSH, on a stand-in for SGLang and its GPUs (3 minutes; needs sshd)
	$(BIN)/python -m tests.sglang.rehearse $(ARGS)

test: $(READY)  ## unit tests and the quick tests with real processes, servers and databases
	$(BIN)/pytest -m 'not slow' $(ARGS)

unit: $(READY)  ## only what needs no process, no connection and no disk: seconds
	$(BIN)/pytest -m 'not (compose or study or host or service or engine or slow)' $(ARGS)

lint: $(READY)  ## formatting, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit:  ## known vulnerabilities in the locked dependencies (says so where nobody can be asked)
	.ci/audit

check: lint docs test audit  ## lint, documentation, test and audit: what a change must pass

slow: $(READY)  ## the long tests: crash campaign, whole sweeps, this README's commands
	$(BIN)/pytest -m slow $(ARGS)

ci: check slow  ## everything

docs: $(READY)  ## the documentation as a site, in build/site (strict: a broken link fails)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'open build/site/index.html (its search works when it is served: python3 -m http.server -d build/site)'

screenshots: $(READY)  ## take the documentation's pictures anew, from what tests see in the browser (minutes)
	$(BIN)/pytest tests/browser tests/page -k 'list_has or charts_show or trials-40-1280-light'
	$(BIN)/python -m tests.docs.pictures

bench: $(READY)  ## how far verdicts hold, what the clients cost, specsweep's own time (about 20 minutes; needs sshd)
	$(BIN)/python -m tests.bench.verdicts
	$(BIN)/python -m tests.bench.client_overhead
	$(BIN)/python -m tests.bench.client_cost
	$(BIN)/python -m tests.bench.restart_time
	$(BIN)/python -m tests.bench.report
	$(BIN)/python -m tests.bench.own_time $(ARGS)

bench-search: $(READY)  ## how many restarts each sampler needs (hours; goes on where it was interrupted)
	@mkdir -p build
	$(BIN)/python -m tests.bench.search run --file build/search_bench.jsonl --processes 2 $(ARGS)
	$(BIN)/python -m tests.bench.search table --file build/search_bench.jsonl
	$(BIN)/python -m tests.bench.search replay
	$(BIN)/python -m tests.bench.search real
	$(BIN)/python -m tests.bench.search time

bench-scale: $(READY)  ## what studies of 100, 1,000 and 10,000 trials cost: start-up, own time, status, memory
	$(BIN)/python -m tests.bench.scale $(ARGS)

fuzz: $(READY)  ## feed every parser of outside text 100,000 damaged inputs (hours on two cores; nightly)
	$(BIN)/python -m tests.fuzz $(ARGS)

interleavings: $(READY)  ## 300 nights of up to 40 random events each, on fakes that outlive the processes (an hour; nightly)
	SPECSWEEP_STATEFUL=300x40 $(BIN)/pytest --timeout 0 tests/stateful $(ARGS)

nightly: fuzz interleavings chaos  ## all that takes hours and must find nothing

chaos: $(READY)  ## break everything on purpose: the fault table, 300 kills (hours; root, sshd, PostgreSQL, faketime; nightly)
	@mkdir -p build
	$(BIN)/python -m tests.chaos --folder build/chaos --page $(ARGS)

ui: $(READY)  ## MLflow's page on the sweep's database
	$(BIN)/specsweep ui $(ARGS)

lock: $(READY)  ## write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra embedded --extra slurm --group build --group model --group dev pyproject.toml --output-file requirements.lock

clean:  ## remove the environment and the caches, not the sweeps
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build *.egg-info
