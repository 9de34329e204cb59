"""``odradek cluster`` with brokers: replicas, failover, status, and what the documents say of it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.cli.cluster import Cluster
from odradek.cli.options import parse_servers
from odradek.client.apis import METADATA
from odradek.protocol.message_types.metadata import MetadataRequest
from tests.broker_process import command_environment
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.project.documents import DOCS, code_blocks

SOON = ("--set", "broker.session.timeout.ms=2000", "--set", "broker.heartbeat.interval.ms=500")


def partitions(cluster, topic):
    """(leader, replicas, in sync) of each partition, as the first broker that answers knows it."""
    with Cluster(parse_servers(",".join(cluster.addresses))) as asked:
        [found] = asked.metadata([topic])
    return [
        (int(row.leader_id), sorted(row.replica_nodes), sorted(row.isr_nodes))
        for row in sorted(found.partitions, key=lambda row: row.partition_index)
    ]


def produce(cluster, topic, value):
    """Raises unless it is acknowledged by all in-sync replicas."""
    failures = []
    producer = Producer({"bootstrap.servers": ",".join(cluster.addresses), "acks": "all", "retry.backoff.ms": 20})
    producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None]


def test_another_broker_leads_when_the_leader_is_killed_and_the_killed_one_comes_back(start_cluster, command):
    cluster = start_cluster("--brokers", 3, *SOON).wait_ready()
    status, out, err = command("topics", "create", "orders", "--partitions", 1, "--bootstrap-server", cluster.addresses[0])
    assert (status, err) == (0, ""), out
    [(leader, replicas, in_sync)] = partitions(cluster, "orders")
    assert (replicas, in_sync) == ([1, 2, 3], [1, 2, 3])
    produce(cluster, "orders", "before")
    before = cluster.nodes()
    assert {node: row["fenced"] for node, row in before.items()} == {100: None, 1: False, 2: False, 3: False}
    assert before[leader]["leaders"] == 1

    cluster.ask("kill", leader)
    produce(cluster, "orders", "after")
    until(lambda: cluster.nodes()[leader]["fenced"], 10)
    [(next_leader, _, in_sync)] = partitions(cluster, "orders")
    assert next_leader in set(replicas) - {leader}
    assert in_sync == sorted(set(replicas) - {leader})

    assert cluster.ask("start", leader)[0] == 0
    until(lambda: partitions(cluster, "orders")[0][2] == [1, 2, 3], 10)
    assert cluster.end(signal.SIGTERM)[0] == 0


def test_the_directories_of_a_cluster_are_for_their_owner_only(start_cluster, tmp_path):
    former = os.umask(0o022)
    try:
        cluster = start_cluster("--brokers", 1, data_dir=tmp_path / "cluster").wait_ready()
    finally:
        os.umask(former)
    made = [tmp_path / "cluster", *(path.parent for path in (tmp_path / "cluster").glob("*/meta.properties"))]
    assert len(made) == 3
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert cluster.end(signal.SIGTERM)[0] == 0


def commit(cluster, group, topic):
    """Commit offset 0 of each partition for a group without members."""
    offsets = [TopicPartition(topic, index, 0) for index in range(len(partitions(cluster, topic)))]
    consumer = Consumer({"bootstrap.servers": ",".join(cluster.addresses), "group.id": group})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_the_commands_tell_what_the_others_know_of_a_broker_that_is_down(start_cluster, command):
    """Until its session ends, it leads its partitions and coordinates its groups."""
    cluster = start_cluster("--brokers", 3, "--set", "broker.session.timeout.ms=60000").wait_ready()
    server = ("--bootstrap-server", ",".join(cluster.addresses))
    assert command("topics", "create", "orders", "--partitions", 3, *server)[0] == 0
    groups = [f"group-{number}" for number in range(8)]
    for group in groups:
        commit(cluster, group, "orders")
    rows = json.loads(command("groups", "list", "--json", *server)[1])
    coordinator = {row["group"]: row["coordinator"] for row in rows}
    dead = partitions(cluster, "orders")[0][0]
    known, unknown = ([group for group in groups if (coordinator[group] == dead) is is_down] for is_down in (False, True))
    assert known
    assert unknown
    cluster.ask("kill", dead)
    told = f"odradek: no broker answers at {cluster.addresses[dead - 1]}: Connection refused\n"

    status, out, err = command("topics", "describe", "orders", "--json", *server)
    assert (status, err) == (1, told)
    [topic] = json.loads(out)
    ends = {row["leader"]: row["log_end_offset"] for row in topic["partitions"]}
    assert len(ends) == 3
    assert {leader for leader, end in ends.items() if end is None} == {dead}

    status, out, err = command("groups", "list", "--json", *server)
    assert (status, err) == (1, told)
    assert sorted(row["group"] for row in json.loads(out)) == sorted(known)

    status, out, err = command("groups", "describe", known[0], unknown[0], "--json", *server)
    assert (status, err) == (1, told)
    [group] = json.loads(out)
    assert group["group"] == known[0]
    assert sorted(row["lag"] is None for row in group["partitions"]) == [False, False, True]

    status, out, err = command("groups", "reset-offsets", known[0], "--all-topics", "--to-latest", "--json", *server)
    assert (status, len(json.loads(out))) == (1, 2)
    refusal = f"odradek: orders-0: {told.removeprefix('odradek: ').rstrip()} (LEADER_NOT_AVAILABLE)"
    assert err.splitlines() == ["odradek: nothing was changed; add --execute to set these offsets", refusal]

    for subject in (("list",), ("find-hanging",)):
        status, out, err = command("transactions", *subject, "--json", *server)
        assert (status, json.loads(out), err) == (1, [], told)


@pytest.mark.timeout(60)
def test_a_broker_that_ends_in_good_order_starts_again_at_once_with_its_own_settings(start_cluster):
    session = "--set", "broker.session.timeout.ms=60000"
    cluster = start_cluster("--brokers", 2, "--racks", "a,b", "--set-broker", "2:broker.rack=z", *session).wait_ready()
    os.kill(cluster.nodes()[2]["pid"], signal.SIGTERM)
    until(lambda: cluster.nodes()[2]["state"] == "down", 20)
    # A registration that met the old session would be tried again for a minute.
    assert cluster.ask("start", 2)[0] == 0
    with Cluster(parse_servers(",".join(cluster.addresses))) as asked:
        brokers = asked.any.call(METADATA, MetadataRequest(topics=[])).brokers
    assert {broker.node_id: broker.rack for broker in brokers} == {1: "a", 2: "z"}


def as_told(text):
    """Without what differs each time: ports and process ids, and the widths of their columns."""
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
    text = re.sub(r"ADDRESS +\d+ ", "ADDRESS PID ", text)
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.timeout(90)
def test_the_documented_session_is_what_happens(start_cluster, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in code_blocks(DOCS / "operations.md", "console") if "odradek cluster" in block]
    [first, *_], [*_, ready] = blocks[0].splitlines(), blocks[0].splitlines()
    assert shlex.split(first) == ["$", "odradek", "cluster", "--brokers", "3", "--data-dir", "./cluster"]
    cluster = start_cluster("--brokers", 3, *SOON, data_dir=tmp_path / "cluster").wait_ready()
    assert as_told(cluster.ready_line) == as_told(ready)

    for said in re.split(r"^\$ odradek ", blocks[1], flags=re.MULTILINE)[1:]:
        line, _, expected = said.partition("\n")
        server = ("--bootstrap-server", cluster.addresses[0]) if line.startswith("topics") else ()
        status, out, err = command(*shlex.split(line), *server)
        assert (status, as_told(out), err) == (0, as_told(expected), ""), line


def test_a_producer_and_a_consumer_follow_the_leaders(start_cluster, command):
    cluster = start_cluster("--brokers", 3, *SOON).wait_ready()
    server = ("-b", ",".join(cluster.addresses))
    assert command("topics", "create", "orders", "--partitions", 3, *server)[0] == 0
    arguments = ["odradek", "produce", "orders", "x", "--count", "1500", "--rate", "500", "--acks", "all", *server]
    producing = subprocess.Popen([sys.executable, "-m", *arguments], env=command_environment())
    assert command("consume", "orders", "--count", 1, *server)[0] == 0
    leader = partitions(cluster, "orders")[0][0]
    consuming = subprocess.Popen(
        [sys.executable, "-m", "odradek", "consume", "orders", "--count", "1500", *server],
        env=command_environment(),
        stdout=subprocess.PIPE,
        bufsize=0,  # ``communicate`` would not know of what ``readline`` has buffered
    )
    assert consuming.stdout.readline() == b"x\n"
    cluster.ask("kill", leader)
    assert producing.wait(40) == 0
    out, _ = consuming.communicate(timeout=40)
    assert (consuming.returncode, out) == (0, b"x\n" * 1499)
    # Until its session ends, the killed broker still counts as the leader, and tells no offsets.
    until(lambda: cluster.nodes()[leader]["fenced"], 10)
    ends = [
        row["log_end_offset"]
        for row in json.loads(command("topics", "describe", "orders", "--json", *server)[1])[0]["partitions"]
    ]
    assert sum(ends) == 1500
