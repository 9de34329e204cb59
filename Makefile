# make run      serve on 127.0.0.1:9092, in an environment of its own (.venv)
# make run-compiled  the same as C extensions (two minutes to make)
# make test     all that a change needs, set-up included
# make test-all  the same, and what a further judge needs: beside Apache Kafka, the campaigns' short forms, planted faults, the rest of
#               Spark, other languages; then the tests of what is compiled on odradek as C extensions
# make check    style, types, import contracts, no circle of imports, lengths, no clock outside timing/
# make bench    side by side with Apache Kafka, odradek compiled, on the system's Python; with COMPILED=no, odradek as it is
# make bench-cluster  the same for clusters of three brokers
# make campaign NAME=soak ARGS="--minutes 60"  a program that takes minutes: kills, power losses, simulations; without a name, the list
# make bench-fixtures  what a broker costs each test of a suite: odradek in process and forked, Apache Kafka, kfake
# make example  the wheel, installed in a fresh environment with examples/pytest-suite, whose tests run there
# make demo     a minute of life with trouble in it, what the pipeline finds of that, and its report
# make demo-test  the same, and the report opened in a browser
# make docs     the documentation as a site, in build/site: open index.html there; it needs no network
# make wheels   what a release has, as far as this machine makes it: a compiled wheel, the pure one and the sources, in dist/
# make test-wheel  both wheels installed in fresh environments and tried
# make clean    remove what these made

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARGS ?=
NAME ?=
COMPILED ?= yes
# odradek as ODRADEK_COMPILE=1 makes it, and what has Python run that one and not the sources beside which it is started.
BUILD := build/compiled-$(notdir $(VENV))
RUN_BUILD := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(BUILD):$(CURDIR)

# The system's own Python, if odradek can be compiled for it, unless another one is named.
COMPILES := import ensurepip, os, sys, sysconfig, venv; \
	sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
SYSTEM_PYTHON = $(if $(PYTHON),,$(shell /usr/bin/python3 -c '$(COMPILES)' 2>/dev/null && echo /usr/bin/python3))

.PHONY: run run-compiled wheels test-wheel kafka-jars bytecode test test-all test-interpreted test-spark test-compiled check bench bench-cluster bench-fixtures bench-here example campaign campaign-compiled clean \
	demo demo-test docs

run: $(INSTALLED)-run
	@echo "$$($(BIN)/odradek --version); make run-compiled runs the compiled build, on a third less processor time" >&2
	$(BIN)/odradek serve --host 127.0.0.1 --port 9092 $(ARGS)

run-compiled: $(BUILD)/.built
	@echo "$$($(RUN_BUILD) $(BIN)/odradek --version); make run runs the sources as they are" >&2
	$(RUN_BUILD) $(BIN)/odradek serve --host 127.0.0.1 --port 9092 $(ARGS)

# A process that crashes is a failure: with another in its place, xdist would wait for ever.
# The order is that of tests/conftest.py: xdist would put a single test last, however long it takes.
IN_GROUPS := --dist loadgroup --no-loadscope-reorder --max-worker-restart=0
# Four processes for two cores, since many tests wait for a client.
IN_PARALLEL := -n 4 $(IN_GROUPS)

# What one process has compiled is there for the others: hundreds are started, and each has all the tests.
bytecode test test-interpreted test-spark test-compiled: export PYTHONDONTWRITEBYTECODE :=

test: $(INSTALLED)-test kafka-jars
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "not further" $(ARGS)

# All of them, whichever fails. The build takes what the tests before it leave of the processors.
test-all: $(INSTALLED)-test kafka-jars
	@mkdir -p build; nice -n 19 $(MAKE) $(BUILD)/.built >build/compiled.log 2>&1 & build=$$!; trap 'kill $$build 2>/dev/null' EXIT; \
	status=0; for tests in interpreted spark; do $(MAKE) --no-print-directory test-$$tests || status=1; done; \
	if wait $$build; then $(MAKE) --no-print-directory test-compiled || status=1; else cat build/compiled.log; status=1; fi; exit $$status

test-interpreted: $(INSTALLED)-test kafka-jars
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "not spark" --further-compiled $(ARGS)

# Spark's stay together in one process, the pipeline's further ones in another: a session each, which takes a processor by itself.
test-spark: $(INSTALLED)-test
	$(BIN)/python -m pytest -n 2 $(IN_GROUPS) -m spark $(ARGS)

test-compiled: $(INSTALLED)-test kafka-jars $(BUILD)/.built
	$(RUN_BUILD) $(BIN)/pytest --import-mode=append $(IN_PARALLEL) --compiled-only $(ARGS)

# The bytecode of all modules that the tests import. Processes that begin together without it compile it once each.
bytecode: $(INSTALLED)-test
	@mkdir -p build; $(BIN)/python -m pytest --collect-only --quiet >build/bytecode.log || { tail -n 100 build/bytecode.log; exit 1; }

# Their download takes longer than most tests may. Without a network those beside Apache Kafka are skipped.
kafka-jars: $(INSTALLED)-test
	@$(BIN)/python -m benchmarks.kafka_jars >/dev/null && $(BIN)/python -m tests.campaigns.kafka_tools.jvm || true

check: $(INSTALLED)-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict odradek
	$(BIN)/lint-imports
	$(BIN)/python tools/check_lengths.py odradek tests tools benchmarks demo
	$(BIN)/python tools/check_circles.py odradek
	$(BIN)/python tools/check_wall_clock.py odradek
	$(BIN)/python tools/check_prose.py odradek README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md tests/README.md benchmarks/README.md

# Both brokers run on what the system ships, Kafka on its Java: PYTHON=/path/to/python runs odradek on another one.
BENCHMARKS ?= benchmarks

ifneq ($(SYSTEM_PYTHON),)
bench:
	PYTHON=$(SYSTEM_PYTHON) $(MAKE) bench-here VENV=.venv-system

bench-cluster:
	PYTHON=$(SYSTEM_PYTHON) $(MAKE) bench-here VENV=.venv-system BENCHMARKS=benchmarks.cluster
else
bench: bench-here

bench-cluster: BENCHMARKS := benchmarks.cluster
bench-cluster: bench-here
endif

ifeq ($(COMPILED),yes)
bench-here: $(INSTALLED)-test $(BUILD)/.built
	$(RUN_BUILD) $(BIN)/python -m $(BENCHMARKS) $(ARGS)
else
bench-here: $(INSTALLED)-test
	$(BIN)/python -m $(BENCHMARKS) $(ARGS)
endif

bench-fixtures: $(INSTALLED)-test
	$(BIN)/python -m benchmarks.fixtures $(ARGS)

example: $(INSTALLED)-run
	PYTHON=$(BIN)/python tools/run_example.sh $(ARGS)

demo: $(INSTALLED)-test
	$(BIN)/python -m demo $(ARGS)

demo-test: $(INSTALLED)-test
	$(BIN)/python -m pytest tests/demo/whole_demo.py $(ARGS)

campaign: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns $(NAME) $(ARGS)

# The same on odradek as C extensions.
campaign-compiled: $(INSTALLED)-test $(BUILD)/.built
	$(RUN_BUILD) $(BIN)/python -m tests.campaigns $(NAME) $(ARGS)

# In strict mode: a warning is an error.
docs: $(INSTALLED)-docs
	rm -rf build/site
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env --doctree-dir build/site-doctrees docs build/site
	@echo build/site/index.html

WHEEL := $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps

wheels: $(INSTALLED)-release
	rm -rf dist build/wheels
	ODRADEK_COMPILE=1 $(WHEEL) --wheel-dir build/wheels .
	if [ "$$(uname)" = Linux ]; then PATH=$(BIN):$$PATH $(BIN)/auditwheel repair --wheel-dir dist build/wheels/*.whl; \
		else mkdir -p dist && cp build/wheels/*.whl dist; fi
	$(WHEEL) --wheel-dir dist .
	$(BIN)/python -m hatchling build --target sdist --directory dist
	$(BIN)/python -m twine check --strict dist/*

test-wheel: wheels
	for build in compiled pure; do \
		rm -rf build/tried && $(BIN)/python -m venv build/tried && \
		case $$build in pure) wheel=dist/*-none-any.whl ;; *) wheel=$$(ls dist/*.whl | grep -v none-any) ;; esac && \
		build/tried/bin/python -m pip install --quiet --disable-pip-version-check $$wheel && \
		build/tried/bin/python tools/try_wheel.py $$build || exit 1; \
	done

clean:
	rm -rf $(VENV) .venv-system build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp a set of extras: the second time nothing is installed, unless what is to be installed has changed.
$(INSTALLED)-run: pyproject.toml tools/bootstrap.sh
	tools/bootstrap.sh $(VENV)
	touch $@

$(INSTALLED)-check: pyproject.toml tools/bootstrap.sh
	tools/bootstrap.sh $(VENV) pipeline,test,dev --install-missing
	touch $@ $(INSTALLED)-run

$(INSTALLED)-test: pyproject.toml tools/bootstrap.sh
	tools/bootstrap.sh $(VENV) pipeline,test,dev,docs --optional --install-missing
	touch $@ $(INSTALLED)-check $(INSTALLED)-docs $(INSTALLED)-run

$(INSTALLED)-docs: pyproject.toml tools/bootstrap.sh
	tools/bootstrap.sh $(VENV) docs
	touch $@ $(INSTALLED)-run

$(INSTALLED)-release: pyproject.toml tools/bootstrap.sh
	tools/bootstrap.sh $(VENV) release
	touch $@ $(INSTALLED)-run

$(BUILD)/.built: pyproject.toml tools/build_hook.py $(shell find odradek -name '*.py') | $(INSTALLED)-run
	rm -rf $(BUILD)
	ODRADEK_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(BUILD) .
	touch $@
