"""``odradek consume`` against a broker, of records of another client."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime

import confluent_kafka
import pytest

from odradek.protocol.record_batch import HEADER_SIZE
from tests.broker_process import start_command
from tests.cases import each_case

NOON_MS = 1_700_000_000_000
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture
def write(broker):
    """Write records to partition 0 as librdkafka does; arguments of ``Producer.produce``."""

    def run(topic, *records, **config):
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, **config})
        for number, record in enumerate(records):
            fields = {"value": record} if isinstance(record, bytes) else record
            producer.produce(topic, **{"partition": 0, "timestamp": NOON_MS + number * 60_000, **fields})
        assert producer.flush(20) == 0

    return run


def values(result):
    """The lines of a run that went well."""
    status, out, err = result
    assert status == 0, err
    return out.splitlines()


@each_case(
    ("start", "expected"),
    [
        (("--from", "beginning"), "abcdef"),
        (("--from", "end"), ""),
        (("--from", "2"), "cdef"),
        (("--from", "-2"), "ef"),
        (("--from", "99"), ""),
        (("--from", "-99"), "abcdef"),
        (("--from", datetime.fromtimestamp(NOON_MS / 1000 + 121, UTC).isoformat()), "def"),
        (("--from", "1h"), ""),
        (("--tail", "3"), "def"),
        (("--tail", "0"), ""),
        ((), "abcdef"),
        (("--from", "1", "--count", "2"), "bc"),
    ],
    ids=str,
)
def test_it_begins_where_it_is_told(ask, write, new_name, start, expected):
    topic = new_name()
    write(topic, *(letter.encode() for letter in "abcdef"))
    assert "".join(values(ask("consume", topic, "--exit-at-end", *start))) == expected


def test_a_count_ends_it_without_an_end(ask, write, topic):
    write(topic, b"a", b"b")
    assert ask("consume", topic, "--from", "beginning", "--count", 1) == (0, "a\n", "")


def test_partitions_are_chosen(ask, write, topic):
    write(topic, {"value": b"a", "partition": 0}, {"value": b"b", "partition": 1}, {"value": b"c", "partition": 2})
    assert sorted(values(ask("consume", topic, "--exit-at-end", "-p", 0, "-p", 2))) == ["a", "c"]
    status, _, err = ask("consume", topic, "-p", 3)
    assert (status, "the topic has 3 partitions, the first is 0" in err) == (1, True)


def test_a_format_has_kcats_tokens(ask, write, topic):
    write(topic, {"key": b"k", "value": b"v", "headers": [("a", b"1"), ("b", None)]}, {"value": None})
    shown = ask("consume", topic, "--exit-at-end", "--format", r"%t %p %o %T %d %k=%v|%s [%h] %K %S 100%%\x21\n")
    assert values(shown) == [
        f"{topic} 0 0 {NOON_MS} 2023-11-14T22:13:20.000Z k=v|v [a=1,b=] 1 1 100%!",
        f"{topic} 0 1 {NOON_MS + 60_000} 2023-11-14T22:14:20.000Z =| [] -1 -1 100%!",
    ]


def test_a_wrong_token_is_refused(command):
    status, _, err = command("consume", "t", "--format", "%y")
    assert (status, err.startswith("odradek: --format: %y is no token; tokens: %t %p ")) == (2, True)


def test_json_has_everything_and_can_be_produced_again(ask, write, topic, new_name, tmp_path):
    copy = new_name()
    write(topic, {"key": b"\xff", "value": "ä".encode(), "headers": [("a", b"1"), ("b", b"\xff"), ("c", None)]})
    out = ask("consume", topic, "--exit-at-end", "--json")[1]
    assert json.loads(out) == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": NOON_MS,
        "key_base64": "/w==",
        "value": "ä",
        "headers": [["a", "1"], ["b", {"base64": "/w=="}], ["c", None]],
    }
    (tmp_path / "records").write_text(out)
    ask("produce", copy, "--json-lines", "--file", tmp_path / "records")
    assert json.loads(ask("consume", copy, "--exit-at-end", "--json")[1]) == {**json.loads(out), "topic": copy}


def test_hex_and_headers(ask, write, topic):
    write(topic, {"value": b"\0\xff", "headers": [("a", b"1")]})
    assert ask("consume", topic, "--exit-at-end", "--hex")[1] == "00ff\n"
    assert ask("consume", topic, "--exit-at-end", "--hex", "--headers")[1] == "a=1\t00ff\n"


def test_filters_are_regular_expressions_over_keys_and_values(ask, write, topic):
    write(topic, {"key": b"a1", "value": b"x"}, {"key": b"a2", "value": "äy".encode()}, {"key": b"b1", "value": b"y"}, b"y")
    assert values(ask("consume", topic, "--exit-at-end", "--key-filter", "^a[0-9]$")) == ["x", "äy"]
    assert values(ask("consume", topic, "--exit-at-end", "--key-filter", "1", "--value-filter", "y")) == ["y"]
    status, _, err = ask("consume", topic, "--value-filter", "(")
    assert (status, err.startswith("odradek: --value-filter (: not a regular expression of RE2: ")) == (2, True)


def test_jq_runs_on_each_value(ask, write, topic):
    pytest.importorskip("jq")
    write(topic, b'{"n": 1, "tags": ["a", "b"]}', b'{"n": 2, "tags": []}')
    assert values(ask("consume", topic, "--exit-at-end", "--jq", ".n + 1")) == ["2", "3"]
    assert values(ask("consume", topic, "--exit-at-end", "--jq", "select(.n > 1) | .tags")) == ["[]"]
    status, _, err = ask("consume", topic, "--jq", "select(")
    assert (status, err.startswith("odradek: --jq select(: ")) == (2, True)


def test_without_the_library_jq_says_how_to_get_it(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "jq", None)
    assert command("consume", "t", "--jq", ".") == (2, "", "odradek: --jq needs the library jq: pip install 'odradek[jq]'\n")


def test_read_committed_leaves_out_what_is_aborted(ask, broker, topic):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions()
    for value, end in (
        (b"a", producer.commit_transaction),
        (b"b", producer.abort_transaction),
        (b"c", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush()
        end()
    assert values(ask("consume", topic, "--exit-at-end", "--isolation", "read_committed")) == ["a", "c"]
    assert values(ask("consume", topic, "--exit-at-end")) == ["a", "b", "c"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_others_compress_is_read(ask, write, topic, codec):
    write(topic, *([b"x" * 200] * 50), **{"compression.type": codec, "linger.ms": 50})
    assert values(ask("consume", topic, "--exit-at-end")) == ["x" * 200] * 50


def test_a_topic_that_is_not_there_is_not_created_and_the_right_one_is_suggested(ask, topic):
    status, out, err = ask("consume", topic.replace("topic", "topc"))
    assert (status, out) == (1, "")
    assert f"there is no such topic; did you mean {topic}" in err
    assert topic.replace("topic", "topc") not in ask("topics", "list")[1]


def test_a_group_goes_on_where_it_was(ask, write, topic, new_name):
    group = new_name()
    write(topic, *(letter.encode() for letter in "abcdef"))
    assert values(ask("consume", topic, "--group", group, "--count", 2)) == ["a", "b"]
    [described] = json.loads(ask("groups", "describe", group, "--json")[1])
    assert (described["state"], [row["lag"] for row in described["partitions"] if row["partition"] == 0]) == ("Empty", [4])
    assert values(ask("consume", topic, "--group", group, "--exit-at-end")) == ["c", "d", "e", "f"]
    assert values(ask("consume", topic, "--group", group, "--exit-at-end")) == []


def test_two_members_share_the_partitions_and_the_last_one_takes_over(ask, ask_json, broker, write, topic, new_name):
    group = new_name()
    arguments = "consume", topic, "-b", broker.address, "--group", group
    members = [start_command(*arguments, **PIPES), start_command(*arguments, **PIPES)]

    def owned():
        found = ask_json("groups", "describe", group)[0] if ask("groups", "describe", group)[0] == 0 else {"members": []}
        return sorted(len((member["assignment"] or {}).get(topic, [])) for member in found["members"])

    while owned() != [1, 2]:
        pass
    members[0].send_signal(signal.SIGINT)
    members[0].communicate(timeout=20)
    while owned() != [3]:
        pass
    write(topic, *({"value": b"%d" % index, "partition": index} for index in range(3)))
    assert sorted(members[1].stdout.readline() for _ in range(3)) == [b"0\n", b"1\n", b"2\n"]
    members[1].send_signal(signal.SIGINT)
    _, err = members[1].communicate(timeout=20)
    assert (err.strip(), members[1].returncode, owned()) == (b"", 130, [])


def test_it_follows_until_ctrl_c_and_says_nothing_then(broker, write, topic):
    following = start_command("consume", topic, "-b", broker.address, **PIPES)
    for value in (b"a", b"b"):
        write(topic, value)
        assert following.stdout.readline() == value + b"\n"
    following.send_signal(signal.SIGINT)
    assert (following.communicate(timeout=20)[1].strip(), following.returncode) == (b"", 130)


def test_a_reader_that_goes_away_ends_it_quietly(ask, broker, topic):
    ask("produce", topic, "x" * 1000, "--count", 1000)
    following = start_command("consume", topic, "-b", broker.address, **PIPES)
    assert following.stdout.readline() == b"x" * 1000 + b"\n"
    following.stdout.close()
    ask("produce", topic, "x" * 1000, "--count", 1000)
    assert (following.wait(20), following.stderr.read()) == (1, b"")
    following.stderr.close()


def test_damaged_records_are_one_line(command, broker_process):
    broker = broker_process()
    command("produce", "t", "a" * 100, "-b", broker.address)
    broker.stop()
    [segment] = (broker.data_dir / "t-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[HEADER_SIZE + 20] ^= 1
    broker.start()
    segment.write_bytes(data)
    status, out, err = command("consume", "t", "-b", broker.address)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("odradek: t-0 from offset 0: CRC is ")
