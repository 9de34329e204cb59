"""``odradek topics`` against a broker."""

import json
import socket
import threading

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient


def columns(out):
    """A table's rows as dicts by title."""
    titles, *rows = (line.split() for line in out.splitlines())
    return [dict(zip(titles, row, strict=True)) for row in rows]


def test_a_topic_that_is_created_is_listed_and_described(ask, new_name):
    name = new_name()
    assert ask("topics", "create", name, "--partitions", 2) == (
        0,
        f"{'TOPIC':{len(name)}}  PARTITIONS  REPLICAS\n{name}           2         1\n",
        "",
    )
    [listed] = [row for row in columns(ask("topics", "list")[1]) if row["TOPIC"] == name]
    assert (listed["PARTITIONS"], listed["REPLICAS"], listed["INTERNAL"]) == ("2", "1", "no")
    rows = columns(ask("topics", "describe", name)[1])
    assert [(row["PARTITION"], row["LEADER"], row["ISR"], row["LOG-END-OFFSET"]) for row in rows] == [
        ("0", "1", "1", "0"),
        ("1", "1", "1", "0"),
    ]


def test_the_brokers_defaults_hold_where_nothing_is_said(ask_json, new_name):
    name = new_name()
    assert ask_json("topics", "create", name) == [{"topic": name, "partitions": 1, "replicas": 1}]


def test_offsets_are_those_of_the_log(ask_json, broker, new_name):
    name = new_name()
    ask_json("topics", "create", name)
    with RawClient(broker.host, broker.port) as client:
        client.produce(name, b"a", b"b", b"c")
        rows = [{"partition_index": 0, "offset": 1}]
        client.call(ApiKey.DELETE_RECORDS, 2, topics=[{"name": name, "partitions": rows}])
    [described] = ask_json("topics", "describe", name)
    [partition] = described["partitions"]
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (1, 3)


def test_configs_are_set_and_only_a_topics_own_are_shown(ask, ask_json, new_name):
    name = new_name()
    ask("topics", "create", name, "--config", "retention.ms=1000", "--config", "cleanup.policy=compact")
    [described] = ask_json("topics", "describe", name)
    assert described["configs"] == {"cleanup.policy": "compact", "retention.ms": "1000"}
    shown = ask("topics", "describe", name)[1].split("\n\n")[1]
    assert {(row["CONFIG"], row["VALUE"]) for row in columns(shown)} == {("cleanup.policy", "compact"), ("retention.ms", "1000")}


def test_what_is_refused_is_told_on_stderr_and_the_rest_is_done(ask, new_name):
    there, fresh = new_name(), new_name()
    ask("topics", "create", there)
    status, out, err = ask("topics", "create", there, fresh)
    assert (status, [row["TOPIC"] for row in columns(out)]) == (1, [fresh])
    assert err.startswith(f"odradek: {there}: ")
    assert err.endswith("(TOPIC_ALREADY_EXISTS)\n")


def test_a_topic_that_is_there_may_be_no_failure(ask, new_name):
    name = new_name()
    ask("topics", "create", name)
    assert ask("topics", "create", name, "--if-not-exists") == (0, "", "")


def test_a_deleted_topic_is_gone(ask):
    # It resembles no other topic, so none is suggested.
    name = "zebra"
    ask("topics", "create", name)
    assert ask("topics", "delete", name) == (0, f"TOPIC\n{name}\n", "")
    assert ask("topics", "describe", name) == (
        1,
        "",
        f"odradek: {name}: there is no such topic or partition (UNKNOWN_TOPIC_OR_PARTITION)\n",
    )
    assert ask("topics", "delete", name)[0] == 1
    assert ask("topics", "delete", name, "--if-exists") == (0, "", "")


def test_describing_a_topic_does_not_create_it(ask, ask_json, new_name):
    name = new_name()
    ask("topics", "describe", name)
    assert name not in {topic["topic"] for topic in ask_json("topics", "list")}


def test_internal_topics_can_be_left_out(ask, ask_json):
    ask("groups", "describe", "a-group-makes-the-topic")
    everything = {topic["topic"]: topic["internal"] for topic in ask_json("topics", "list")}
    assert everything["__consumer_offsets"] is True
    assert "__consumer_offsets" not in {topic["topic"] for topic in ask_json("topics", "list", "--exclude-internal")}


def test_json_of_nothing_is_an_empty_list(ask, new_name):
    status, out, err = ask("topics", "describe", new_name(), "--json")
    assert (status, json.loads(out), err.count("\n")) == (1, [], 1)


def test_no_broker_is_status_2_and_one_line(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    status, out, err = command("topics", "list", "--bootstrap-server", f"127.0.0.1:{port}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"127.0.0.1:{port}" in err


def test_something_else_than_a_broker_is_status_2(command):
    with socket.create_server(("127.0.0.1", 0)) as other:
        # Longer than any response, as the first bytes of most texts are.
        answer = b"SSH-2.0-x\r\n"
        address = f"127.0.0.1:{other.getsockname()[1]}"

        def serve():
            peer, _ = other.accept()
            peer.sendall(answer)
            peer.recv(1000)
            peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        status, _, err = command("topics", "list", "--bootstrap-server", address)
        thread.join()
    hint = "if it wants TLS or a password, set security.protocol in the file of --command-config or in a --profile"
    assert (status, err) == (2, f"odradek: {address} is not a Kafka broker: its answer is not a Kafka response; {hint}\n")


def test_the_next_bootstrap_server_is_tried(command, broker):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert command("topics", "list", "--bootstrap-server", f"127.0.0.1:{port},{broker.address}")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("create", "x", "--partitions", "0"),
        ("create", "x", "--config", "retention.ms"),
        ("list", "--bootstrap-server", "localhost"),
        ("list", "--bootstrap-server", "localhost:0"),
        ("rename", "x"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(command, arguments):
    status, out, err = command("topics", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("group", ["topics", "groups"])
def test_without_a_command_the_help_goes_to_stderr_with_status_2(command, group):
    status, out, err = command(group)
    assert (status, out) == (2, "")
    assert err.startswith(f"Usage: odradek {group} ")
