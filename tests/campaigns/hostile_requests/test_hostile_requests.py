"""Hostile requests, some of each kind. Machines differ and are busy: the limits are those of a fault, and not the campaign's."""

import re
import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns.hostile_requests.kinds import KINDS, choose, draw

# A test runs the campaign twice.
pytestmark = pytest.mark.timeout(180)
# What is planted is ten times as long, and what a busy machine does to a sound broker a tenth of it.
STALL_MS = 500
RUN = "import sys; from tests.campaigns.hostile_requests.__main__ import main; sys.exit(main())"
# In the broker's process, before it starts: connections whose turns have no end, so that each begins all that has arrived.
ENDLESS_TURNS = """
import odradek.broker.network.request_limits as request_turns
from odradek.__main__ import start

request_turns.TURN_MS = request_turns.SLICE_MS = 3_600_000.0
start()
"""
# Responses of any size: one has hundreds of megabytes for a request of a hundred kilobytes.
UNBOUNDED = """
from odradek.broker.network.large_requests import LargeRequests
from odradek.__main__ import start

LargeRequests._most_bytes = lambda _requests, _size_bytes: 1 << 40
start()
"""
# A wrapper of one API's handler.
FAULTY = """
import sys
import odradek.broker.start.server as server
from odradek.__main__ import start

load = server.load_handler
# A large request comes to the handler in pieces: the first is enough.
planted = iter([True])

def load_handler(api_key):
    handle = load(api_key)
    def faulty(services, context, request):
        {fault}
        return handle(services, context, request)
    return faulty if api_key.name == "FIND_COORDINATOR" else handle

server.load_handler = load_handler
start()
"""
PROGRAM = """
import sys
from tests.broker_process import BrokerProcess
BrokerProcess.program = ("-c", {broker!r})
from tests.campaigns.hostile_requests.__main__ import main
sys.exit(main())
"""


def run(*arguments, program=RUN):
    command = [
        sys.executable,
        "-c",
        program,
        "--stall-ms",
        str(STALL_MS),
        "--control-s",
        "0.2",
        "--partitions",
        "200",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=80, cwd=REPOSITORY)


def test_a_broker_serves_its_other_client_and_keeps_its_memory():
    # Creating thousands of logs takes the disk's time, whatever the broker does meanwhile. What large answers need takes minutes.
    slow = {"unknown topics", "many partitions", "many topics", "large answer", "slow readers", "flood"}
    cheap = [word for kind in KINDS if kind not in slow for word in ("--kinds", kind)]
    done = run("--seed", "7", "--requests", "20", *cheap)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7: 20 requests" in done.stdout
    assert "memory allowed: 0" in done.stdout


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "fault",
    # It computes, and does not sleep: a disk on which a write takes a second would account for a wait.
    ["sum(range(100_000_000))", "services.kept = b'kept' * 75_000_000"],
    ids=["a handler that computes for seconds", "a handler that keeps what is a hundred times its request"],
)
def test_a_planted_fault_is_found_and_its_request_is_named(fault):
    broker = FAULTY.format(
        api="FIND_COORDINATOR", fault=f"if len(request.coordinator_keys) > 1 and next(planted, False): {fault}"
    )
    done = run("--seed", "7", "--requests", "3", "--kinds", "tagged fields", program=PROGRAM.format(broker=broker))
    assert done.returncode == 0, done.stdout + done.stderr

    done = run("--seed", "7", "--requests", "1", "--kinds", "coordinators", program=PROGRAM.format(broker=broker))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED #0 coordinators" in done.stdout
    assert "--seed 7 --first 0 --requests 1" in done.stderr


SCENARIOS_ON_TRIAL = ("flood-ApiVersions-10", "CreateTopics-8400", "DescribeConfigs-of-broker-1")


def test_a_scenario_has_one_line():
    done = run("--lasts-s", "1", *[word for name in SCENARIOS_ON_TRIAL for word in ("--only", name)])

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(SCENARIOS_ON_TRIAL)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("broker", "scenario", "found"),
    [
        (ENDLESS_TURNS, "flood-ApiVersions-10", r"another client waited \d{3,} ms"),
        (UNBOUNDED, "DescribeConfigs-of-broker-20000", r"\(\+\d{3,} of"),
    ],
    ids=["a connection begins everything in one turn", "an answer that is not bounded"],
)
def test_a_planted_fault_is_found_by_its_scenario(broker, scenario, found):
    # A busy machine leaves a flood of some seconds little of the broker's time.
    done = run("--only", scenario, "--lasts-s", "4", "--stall-ms", "150", program=PROGRAM.format(broker=broker))

    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(f"^FAILED {scenario}: .*{found}", done.stdout), done.stdout


def test_a_request_is_the_same_whenever_it_is_drawn():
    assert [draw(3, number) for number in range(30)] == [draw(3, number) for number in range(30)]


def test_all_kinds_are_drawn():
    assert {choose(3, number)[0] for number in range(3_000)} == set(KINDS)
