# make run      serve on 127.0.0.1:9092, in an environment of its own (.venv)
# make test     every test, set-up included
# make test-compiled  the same tests, less those of what stands in for a compiled class, against odradek as C extensions (three minutes to make)
# make check    style, types, import contracts, lengths, no clock outside timing/
# make bench    side by side with Apache Kafka, odradek compiled, on the system's Python; with COMPILED=no, odradek as it is
# make demo     a minute of life with trouble in it, what the pipeline finds of that, and its report
# make demo-test  the same, and the report opened in a browser
# make fuzz     1,000,000 frames through protocol/, 20,000 through a live socket
# make simulate SEEDS histories of consumer groups and as many of transactions (20,000 by default), each from its seed
# make crash    kill -9 the broker 20 times under three rebalancing groups of real clients
# make crash-points  kill the broker at each named point of a transaction, and look at what is there after
# make power-loss  power lost, kill -9 and failing disks at every write of a workload, and every bit of a small log flipped
# make soak     a bank of transactional clients, killed with -9 and so is the broker, for MINUTES (5 by default)
# make kafka-files  files of odradek read by Apache Kafka's tools, and those of Apache Kafka opened by odradek; the same logs compacted by both
# make pipeline-bench  the pipeline over a synthetic history of RECORDS records (1,000,000 by default), on one core and on two
# make pipeline-differential  the pipeline's tables against what odradek and Apache Kafka answer, and against Kafka's own formatters
# make pipeline-kills  the pipeline's jobs killed 10 times, and the broker under them; the tables are those of an undisturbed run
# make pipeline-cluster  the same tables, byte for byte, from a Spark cluster of a master and two workers
# make clean    remove what these made

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARGS ?=
SEEDS ?= 20000
MINUTES ?= 5
RECORDS ?= 1000000
COMPILED ?= yes
# odradek as ODRADEK_COMPILE=1 makes it, and what has Python run that one and not the sources beside which it is started.
BUILD := build/compiled-$(notdir $(VENV))
RUN_BUILD := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(BUILD):$(CURDIR)

# The system's own Python, if odradek can be compiled for it, unless another one is named.
COMPILES := import ensurepip, os, sys, sysconfig, venv; \
	sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
SYSTEM_PYTHON = $(if $(PYTHON),,$(shell /usr/bin/python3 -c '$(COMPILES)' 2>/dev/null && echo /usr/bin/python3))

.PHONY: run test test-compiled check bench bench-here fuzz simulate crash crash-points power-loss soak kafka-files clean demo demo-test \
	pipeline-bench pipeline-differential pipeline-kills pipeline-cluster

run: $(INSTALLED)-run
	$(BIN)/odradek serve --host 127.0.0.1 --port 9092 $(ARGS)

# Three processes for two cores, since many tests wait for a client. Spark's tests stay together in one, the pipeline's in another.
test: $(INSTALLED)-test
	$(BIN)/python -m pytest -n 3 --dist loadgroup $(ARGS)

test-compiled: $(INSTALLED)-test $(BUILD)/.built
	$(RUN_BUILD) $(BIN)/pytest --import-mode=append -n 3 --dist loadgroup $(ARGS)

check: $(INSTALLED)-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict odradek
	$(BIN)/lint-imports
	$(BIN)/python tools/check_lengths.py odradek tests tools benchmarks demo
	$(BIN)/python tools/check_wall_clock.py odradek

# Both brokers run on what the system ships, Kafka on its Java: PYTHON=/path/to/python runs odradek on another one.
ifneq ($(SYSTEM_PYTHON),)
bench:
	PYTHON=$(SYSTEM_PYTHON) $(MAKE) bench-here VENV=.venv-system
else
bench: bench-here
endif

ifeq ($(COMPILED),yes)
bench-here: $(INSTALLED)-test $(BUILD)/.built
	$(RUN_BUILD) $(BIN)/python -m benchmarks $(ARGS)
else
bench-here: $(INSTALLED)-test
	$(BIN)/python -m benchmarks $(ARGS)
endif

demo: $(INSTALLED)-test
	$(BIN)/python -m demo $(ARGS)

demo-test: $(INSTALLED)-test
	$(BIN)/python -m pytest tests/demo/whole_demo.py $(ARGS)

fuzz: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.fuzz.protocol_fuzz --frames 1000000
	$(BIN)/python -m tests.campaigns.fuzz.socket_fuzz --frames 20000

# One process a core, of two. One seed again: python -m tests.campaigns.simulation.groups, or .transactions, --seed N --trace
simulate: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.simulation --seeds $(SEEDS) --jobs 2 $(ARGS)

crash: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.crash.kill9_groups --kills 20 $(ARGS)

crash-points: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.crash.crash_points $(ARGS)

# One process a core, of two. What is drawn by chance again: python -m tests.campaigns.power_loss --only chance --seed N
power-loss: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.power_loss $(ARGS)

soak: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.soak.soak --minutes $(MINUTES) $(ARGS)

kafka-files: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.kafka_tools.both_ways $(ARGS)

pipeline-bench: $(INSTALLED)-test
	$(BIN)/python -m benchmarks.pipeline --records $(RECORDS) $(ARGS)

pipeline-differential: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.pipeline_differential $(ARGS)

pipeline-kills: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.pipeline_kills $(ARGS)

pipeline-cluster: $(INSTALLED)-test
	$(BIN)/python -m tests.campaigns.pipeline_cluster $(ARGS)

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
	tools/bootstrap.sh $(VENV) pipeline,test,dev --java --browser --install-missing
	touch $@ $(INSTALLED)-check $(INSTALLED)-run

$(BUILD)/.built: pyproject.toml tools/build_hook.py $(shell find odradek -name '*.py') | $(INSTALLED)-run
	rm -rf $(BUILD)
	ODRADEK_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(BUILD) .
	touch $@
