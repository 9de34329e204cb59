"""Misuse of the kit: an error that says what to do instead, at the line of the test, and nothing that was done by half."""

import asyncio
import importlib
import pkgutil
import re

import pytest
from confluent_kafka.admin import AdminClient

import odradek.testing
from odradek.protocol.errors import KafkaError
from odradek.testing import Broker, KafkaContainer, NewTopic, SocketlessBroker, Timeline, replay
from odradek.testing.certificates import CertificateAuthority
from odradek.testing.faults.vocabulary import BadRule
from odradek.testing.steered_clock import SteeredClock
from tests.cases import each_case


@pytest.fixture(scope="module")
def broker():
    with Broker(topics={"orders": 2}) as broker:
        yield broker


ROWS = r"rows must be a list with a row for each record: produce\(topic, \[.*\]\)"


@each_case(
    ("misuse", "error", "says"),
    [
        (lambda broker: broker.produce("orders", "abc"), TypeError, ROWS + ", not 'abc'"),
        (lambda broker: broker.produce("orders", b"abc"), TypeError, ROWS),
        (lambda broker: broker.produce("orders", {"total": 12}), TypeError, ROWS),
        (lambda broker: broker.produce("orders", ("key", "value")), TypeError, ROWS),
        (lambda broker: broker.produce("orders", 7), TypeError, ROWS),
        (lambda broker: broker.produce(["orders"], ["abc"]), TypeError, "topic must be a string, not"),
        (lambda broker: broker.produce("orders", [{1, 2}]), ValueError, r"the row \{1, 2\} cannot be written: .*JSON"),
        (lambda broker: broker.produce("orders", ["\ud800"]), ValueError, "cannot be written: 'utf-8' codec"),
        (
            lambda broker: broker.produce("orders", [("k", "v", [("h", "1")])]),
            TypeError,
            "headers must be a dict of names and values",
        ),
        (lambda broker: broker.produce("orders", [("k", "v", {1: "1"})]), ValueError, "header must be a string"),
        (lambda broker: broker.produce("orders", ["v"], partition=2), ValueError, "topic 'orders' has no partition 2: it has 2"),
        (lambda broker: broker.produce("orders", ["v"], partition="0"), TypeError, "partition must be a whole number, not '0'"),
        (lambda broker: broker.produce("no name", ["v"]), KafkaError, "INVALID_TOPIC_EXCEPTION"),
        (lambda broker: broker.records("order"), KafkaError, "there is no topic 'order'; topics: orders"),
        (lambda broker: broker.records("orders", isolation_level="committed"), ValueError, "one of read_uncommitted, read_comm"),
        (lambda broker: broker.topics["order"], KeyError, "there is no topic 'order'; topics: orders"),
        (lambda broker: broker.topics["orders"].end_offsets[2], KeyError, "there is no partition 2; partitions: 0, 1"),
        (lambda broker: broker.groups["g"], KeyError, "there is no group 'g'; groups: none"),
        (lambda broker: broker.transactions["tx"], KeyError, "no transactional id 'tx'; transactional ids: none"),
        (lambda broker: broker.topic("t", "3"), TypeError, "a number of partitions, None or NewTopic"),
        (lambda broker: broker.topic("t", NewTopic("t", 3)), TypeError, "a number of partitions, None or NewTopic"),
        (
            lambda broker: broker.topic("t", NewTopic(1, {"cleanup.policy": None})),
            TypeError,
            "the config cleanup.policy must be a string",
        ),
        (lambda broker: broker.topic("t", NewTopic(1, {"cleanup.polcy": "x"})), KafkaError, "cleanup.polcy"),
        (
            lambda broker: broker.topic("orders", 3),
            KafkaError,
            "TOPIC_ALREADY_EXISTS: topic 'orders' .* it has 2 partitions, not 3",
        ),
        (lambda broker: broker.topic("orders", NewTopic(2, {"retention.ms": 1})), KafkaError, "its retention.ms is 604800000"),
        (lambda broker: broker.topic(7), TypeError, "topic must be a string, not 7"),
        (lambda broker: broker.group(None), TypeError, "group must be a string"),
        (lambda broker: broker.transactional_id(7), TypeError, "transactional id must be a string"),
        (lambda broker: broker.wait_for("g"), TypeError, r'wait_for takes its arguments by name: wait_for\(group="g"'),
        (
            lambda broker: broker.wait_for(group="g", state="stable"),
            ValueError,
            "state of a group must be one of .*Stable.*not 'stable'",
        ),
        (lambda broker: broker.wait_for(transactional_id="t", state="Open"), ValueError, "one of Empty, Ongoing"),
        (lambda broker: broker.wait_for(group="g", members="1"), TypeError, "members must be a whole number, not '1'"),
        (lambda broker: broker.wait_for(topic="t", records=-1), ValueError, "records must be a whole number from 0 on"),
        (lambda broker: broker.wait_for(topic=7), TypeError, "topic must be a string"),
        (lambda broker: broker.wait_for(topic="t", within="5"), TypeError, "within must be a number of seconds, not '5'"),
        (lambda broker: broker.wait_for(topic="t", within=1e308), ValueError, "within must be from 0 to 86400 seconds"),
        (lambda broker: broker.wait_for(topic="t", within=float("nan")), ValueError, "within must be from 0 to 86400 seconds"),
        (lambda broker: broker.clock.advance(second=1), TypeError, "must be in weeks, days.*'second'; did you mean seconds"),
        (lambda broker: broker.clock.advance(5), TypeError, r"advance takes its arguments by name: advance\(seconds=5\), not 5"),
        (lambda broker: broker.clock.advance(seconds="5"), TypeError, "a number of seconds, not '5'"),
        (lambda broker: broker.clock.advance(seconds=-5), ValueError, "time cannot go back"),
        (lambda broker: broker.clock.advance(days=float("nan")), ValueError, "not a valid duration"),
        (lambda broker: broker.clock.advance(days=1e308), ValueError, "not a valid duration"),
        (lambda broker: broker.clock.advance(days=9e6), ValueError, "time ends with the year 9999"),
        (lambda broker: setattr(broker.clock, "speed", "60"), TypeError, "a speed must be a number, not '60'"),
        (lambda broker: setattr(broker.clock, "speed", 1e308), ValueError, "a speed must be above 0 and at most"),
        (lambda broker: broker.restore("x"), TypeError, r"needs a snapshot returned by broker.snapshot\(\): not 'x'"),
        (lambda broker: broker.snapshot().fork(configs=["a"]), TypeError, "configs must be a dict of names and values"),
        (lambda broker: broker.snapshot().fork().produce("t", ["v"]), RuntimeError, "broker.produce needs a running broker"),
        (lambda broker: broker.snapshot().fork(configs={"num.partition": 1}).__enter__(), ValueError, "mean num.partitions?"),
        (lambda broker: broker.subscribe_client_metrics(["a"]), TypeError, "metric's prefix must be a string"),
        (lambda broker: broker.subscribe_client_metrics(interval_ms="1"), TypeError, "interval_ms must be a whole number"),
        (lambda broker: broker.subscribe_client_metrics(match="x"), TypeError, "match must be a dict of attributes and patterns"),
        (lambda broker: broker.timeline.where(api="Prodce"), ValueError, "'Prodce' is not an API"),
        (lambda broker: broker.timeline.where(api=7), ValueError, "7 is not an API"),
        (
            lambda broker: broker.timeline.where(error="NO"),
            ValueError,
            "'NO' is not an error code; use a name such as NOT_COORDINATOR",
        ),
        (lambda broker: broker.timeline.where(api="Produce"), RuntimeError, r"never started: call timeline.start\(\) first"),
        (lambda broker: broker.timeline.decisions, RuntimeError, "never started: .*Broker\\(timeline=True\\)"),
        (lambda broker: broker.clock.advance(), TypeError, r"a duration in weeks, .*use, for example, advance\(seconds=5\)"),
        (lambda broker: broker.timeline.start(limit="5"), TypeError, "limit must be a whole number"),
        (lambda broker: broker.faults.add({"api": "Fetch"}), TypeError, r'by name: faults.add\(api="Produce"'),
        (lambda broker: broker.faults.load({"api": "Fetch"}), BadRule, "allowed is a list of rules"),
        (lambda broker: broker.faults.load("rules.json"), BadRule, "allowed is a list of rules"),
        (lambda broker: broker.faults.add(api="Fetch").wait("1"), TypeError, "the number of times must be a whole number"),
        (lambda broker: broker.faults.add(api="Fetch").wait(within=-1), ValueError, "within must be from 0"),
        (lambda broker: broker.lag("g"), AssertionError, "there is no group 'g'; groups: none"),
    ],
)
def test_misuse_of_a_broker_is_told_with_what_to_do_instead(broker, misuse, error, says):
    with pytest.raises(error, match=says) as caught:
        misuse(broker)
    broker.faults.clear()
    assert [len(broker.records("orders")), list(broker.topics)] == [0, ["orders"]]
    # Whatever stands between the test's line and the error is hidden.
    kit = [entry for entry in caught.traceback if entry.path.name != "test_misuse.py"]
    assert [str(entry) for entry in kit if not entry.ishidden(caught)] == []


@each_case(
    ("make", "error", "says"),
    [
        (lambda: Broker(topics=["orders"]), TypeError, r"topics=\{'orders': 1\}, not \['orders'\]"),
        (lambda: Broker(topics="orders"), TypeError, r"topics=\{'orders': 1\}"),
        (lambda: Broker(topics={"orders": "1"}), TypeError, "topic 'orders' needs a number of partitions"),
        (lambda: Broker(topics={"orders": True}), TypeError, "topic 'orders' needs a number of partitions"),
        (lambda: Broker({"orders": 1}), TypeError, "a broker's directory must be a path.*topics="),
        (lambda: Broker(configs=["num.partitions=1"]), TypeError, 'configs={"num.partitions": 3}'),
        (lambda: Broker(configs={"num.partitions": None}), TypeError, "the config num.partitions must be a string, a number"),
        (lambda: Broker(background="thread"), ValueError, "background must be one of threads, inline, seeded, not 'thread'"),
        (lambda: SocketlessBroker(7), TypeError, "a broker's directory must be a path"),
        (lambda: Broker().bootstrap_servers, RuntimeError, "has not been started: use with Broker"),
        (lambda: Broker().produce("t", ["v"]), RuntimeError, "broker.produce needs a running broker: use with Broker"),
        (lambda: Broker().topics, RuntimeError, "broker.topics needs a running broker: use with Broker"),
        (lambda: KafkaContainer().get_bootstrap_server(), RuntimeError, r"has not been started: call container.start\(\)"),
        (lambda: CertificateAuthority.make().issue("b", hosts="127.0.0.1"), TypeError, r"hosts=\['127.0.0.1'\]"),
    ],
)
def test_misuse_before_a_start_is_told_with_what_to_do_instead(make, error, says):
    with pytest.raises(error, match=says):
        make()


@pytest.mark.parametrize(
    ("configs", "says"),
    [
        ({"num.partition": 3}, "num.partition: there is no such config; did you mean num.partitions?"),
        ({"retention.ms": 3}, "retention.ms: it is set on a topic; the broker's default for it is log.retention.ms"),
    ],
)
def test_a_config_that_kafka_does_not_have_ends_the_start(configs, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Broker(configs=configs).__enter__()
    with KafkaContainer(env={"KAFKA_NUM_PARTITION": "3"}) as container:
        assert "num.partition is ignored" in str(container.broker.log[0])


def test_a_predicate_that_fails_is_told_in_the_test_and_meets_no_client():
    with Broker(topics={"t": 1}) as broker:
        fault = broker.faults.add(predicate=lambda request: request.topic == "t", error="NOT_ENOUGH_REPLICAS")
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        assert list(client.list_topics("t", timeout=10).topics) == ["t"]
        for misuse in (fault.wait, lambda: fault.hits, lambda: fault.fired, lambda: fault.__exit__(None, None, None)):
            with pytest.raises(BadRule, match=r"predicate: it raised AttributeError.*'topic'.*; a request has .*topics, partit"):
                misuse()
        assert [line.event for line in broker.log] == ["a rule's predicate raised an error: the rule is disabled"]


@pytest.mark.parametrize(
    ("timeline", "address", "error", "says"),
    [
        ("session.jsonl", "127.0.0.1:9092", TypeError, r"replay needs a timeline, .*Timeline.load\(path\), not 'session.jsonl'"),
        (Timeline(), "localhost", ValueError, "a broker's address must be HOST:PORT, not 'localhost'"),
    ],
)
def test_a_replay_of_what_is_none_is_told(timeline, address, error, says):
    with pytest.raises(error, match=says):
        replay(timeline, address)


def test_a_list_and_a_truth_are_written_as_kafka_does():
    with Broker(topics={"t": NewTopic(1, {"cleanup.policy": ["compact", "delete"], "preallocate": False})}) as broker:
        assert broker.topics["t"].partitions == 1


def test_a_stopped_broker_says_so(tmp_path):
    with Broker(tmp_path / "data", topics={"t": 1}) as broker:
        snapshot = broker.snapshot()
        broker.stop()
        for misuse in (lambda: broker.produce("t", ["v"]), lambda: broker.topics, broker.clock.freeze, broker.stop):
            with pytest.raises(RuntimeError, match="the broker is not running: "):
                misuse()
        broker.start()
        snapshot.close()
        for misuse in (snapshot.fork, lambda: broker.restore(snapshot)):
            with pytest.raises(RuntimeError, match="the snapshot is closed"):
                misuse()


def test_the_broker_that_was_entered_is_the_one_to_ask():
    owner = Broker(topics={"t": 1})
    with owner, pytest.raises(RuntimeError, match=r"the broker runs in its own thread: call broker\.produce"):
        owner.produce("t", ["v"])


async def test_what_is_done_at_once_may_be_awaited_like_the_rest():
    async with Broker(topics={"t": 1}) as broker:
        await broker.clock.freeze()
        await broker.clock.resume()
        fault = await broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS")
        await fault.remove()
        await broker.faults.clear()
        await broker.kill()
        assert not broker.is_running
        await broker.start()
        broker.kill()
        await broker.start()
        await broker.lose_power()
        assert not broker.is_running


async def test_a_question_that_nobody_awaits_is_an_error():
    with pytest.raises(RuntimeError, match=r"did nothing: await broker.produce\(\.\.\.\) at .*test_misuse.py:\d+"):
        async with Broker(topics={"t": 1}) as broker:
            broker.produce("t", ["v"])
    with pytest.raises(KeyError, match="there is no topic 'order'"):
        async with Broker(topics={"t": 1}) as broker:
            (broker.produce("t", ["v"]), (await broker.topics)["order"])


@each_case(
    "misuse",
    [
        lambda broker: broker.topics["t"],
        lambda broker: list(broker.records("t")),
        lambda broker: len(broker.groups),
        lambda broker: "t" in broker.topics,
        lambda broker: bool(broker.lag("g")),
        lambda broker: broker.lag("g") > 0,
    ],
)
async def test_an_answer_that_was_not_awaited_cannot_be_used(misuse):
    async with Broker(topics={"t": 1}) as broker:
        with pytest.raises(TypeError, match=r"must be awaited here: await broker\."):
            misuse(broker)
        with pytest.raises(AttributeError, match=r"await broker.snapshot, then use fork of the result"):
            broker.snapshot().fork()
        with pytest.raises(TypeError, match=r"await broker.snapshot\(\) first"):
            await broker.restore(broker.snapshot())
        for each in list(broker.unawaited):
            each.close()


async def test_what_is_asked_can_be_run_in_every_way_that_a_coroutine_can():
    async with Broker(topics={"t": 1}) as broker:
        await asyncio.create_task(broker.produce("t", ["1"]))
        await asyncio.wait_for(broker.produce("t", ["2"]), 10)
        await asyncio.gather(broker.produce("t", ["3"]), broker.produce("t", ["4"]))
        async with asyncio.TaskGroup() as group:
            group.create_task(broker.produce("t", ["5"]))
        assert {each.text for each in await broker.records("t")} == set("12345")


def test_pytest_shows_no_frames_of_the_kit():
    found = pkgutil.walk_packages(odradek.testing.__path__, f"{odradek.testing.__name__}.")
    of_processes = (".control.", ".timeline.command")
    names = [module.name for module in found if not module.ispkg and not any(each in module.name for each in of_processes)]
    shown = [name for name in names if not getattr(importlib.import_module(name), "__tracebackhide__", False)]
    assert shown == []


def test_a_clock_without_a_broker_says_what_it_takes():
    clock = SteeredClock()
    with pytest.raises(TypeError, match="a speed must be a number, not True"):
        clock.speed = True
