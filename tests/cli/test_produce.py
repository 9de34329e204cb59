"""``odradek produce`` against a broker, read by another client."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import kafka
import pytest

from tests.broker_process import start_command


@pytest.fixture
def stored(broker):
    """(partition, key, value, headers) of every committed record of a topic, as kafka-python reads them."""

    def read(topic):
        consumer = kafka.KafkaConsumer(bootstrap_servers=broker.address, isolation_level="read_committed")
        try:
            partitions = [kafka.TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            records = []
            while any(consumer.position(partition) < ends[partition] for partition in partitions):
                for those in consumer.poll(1000).values():
                    records += those
            return [(record.partition, record.key, record.value, list(record.headers)) for record in records]
        finally:
            consumer.close()

    return read


@pytest.fixture
def type_in(monkeypatch):
    """Put bytes on stdin."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_value_is_written_to_a_topic_that_is_created_by_that(ask, stored, new_name):
    name = new_name()
    status, out, err = ask("produce", name, '{"total": 12}')
    assert (status, out, err) == (0, "", f"odradek: there was no topic {name}: the broker has created it\n")
    assert stored(name) == [(0, None, b'{"total": 12}', [])]


def test_each_line_of_stdin_is_a_record(ask, stored, topic, type_in):
    type_in(b"one\n\nthree \xff")
    assert ask("produce", topic, "--partition", 1) == (0, "", "")
    assert stored(topic) == [(1, None, value, []) for value in (b"one", b"", b"three \xff")]


def test_keys_choose_the_partition_that_kafkas_clients_choose(ask, broker, stored, topic, type_in):
    keys = [f"key {number}".encode() for number in range(20)]
    type_in(b"".join(key + b"\t" + key + b"\n" for key in keys))
    assert ask("produce", topic, "--key-separator", r"\t")[0] == 0
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address)
    theirs = {key: producer.send(topic, key=key, value=b"").get(10).partition for key in keys}
    producer.close()
    assert {key: partition for partition, key, value, _ in stored(topic) if value} == theirs


def test_headers_keys_and_tombstones_are_written(ask, stored, topic, type_in):
    type_in(b"gone:\n")
    ask("produce", topic, "--key-separator", ":", "--empty-as-null", "--header", "a=1", "--header", "a=")
    assert [record[1:] for record in stored(topic)] == [(b"gone", None, [("a", b"1"), ("a", b"")])]


def test_json_lines_have_all_parts_of_a_record(ask, stored, topic, type_in):
    lines = [
        {"key": "k", "value": {"total": 1}, "headers": {"a": "1"}, "partition": 2},
        {"key": None, "value": None, "headers": [["a", None], ["b", {"base64": "/w=="}]], "partition": 2},
        {"value_base64": "AP8=", "partition": 2},
    ]
    type_in("\n".join(map(json.dumps, lines)).encode())
    assert ask("produce", topic, "--json-lines")[0] == 0
    assert stored(topic) == [
        (2, b"k", b'{"total": 1}', [("a", b"1")]),
        (2, None, None, [("a", None), ("b", b"\xff")]),
        (2, None, b"\0\xff", []),
    ]


def test_a_bad_json_line_is_named_and_those_before_it_in_the_same_read_are_not_written(ask, stored, topic, type_in):
    type_in(b'{"value": "a"}\n{"valu": "b"}\n')
    status, _, err = ask("produce", topic, "--json-lines")
    assert (status, err.startswith("odradek: record 2: unknown field valu; known are headers, key, ")) == (2, True)
    assert stored(topic) == []


def test_files_are_lines_or_whole_records(ask, stored, topic, tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "b").write_bytes(b"3")
    files = "--file", tmp_path / "a", "--file", tmp_path / "b"
    ask("produce", topic, "--partition", 0, *files)
    ask("produce", topic, "--partition", 0, *files, "--whole")
    assert [record[2] for record in stored(topic)] == [b"1", b"2", b"3", b"1\n2\n", b"3"]


def test_arguments_are_repeated_up_to_the_count(ask, stored, topic):
    ask("produce", topic, "--partition", 0, "a", "b", "--count", 3)
    assert [record[2] for record in stored(topic)] == [b"a", b"b", b"a"]


def test_a_rate_is_kept(ask, topic):
    started = time.monotonic()
    ask("produce", topic, "a", "--count", 40, "--rate", 100)
    assert time.monotonic() - started > 0.29


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_what_is_compressed_is_read_by_others(ask, ask_json, stored, topic, codec, acks):
    [told] = ask_json("produce", topic, "a" * 1000, "--count", 3, "--compression", codec, "--acks", acks)
    assert (told["topic"], told["records"], told["last_offset"]) == (topic, 3, -1 if acks == "0" else 2)
    while len(found := stored(topic)) < 3:
        pass
    assert [record[2] for record in found] == [b"a" * 1000] * 3


def test_a_transaction_is_committed_for_each_batch(ask, stored, topic):
    ask("produce", topic, "--partition", 0, *"abcde", "--transactional-id", topic, "--transaction-records", 2)
    assert [record[2] for record in stored(topic)] == [b"a", b"b", b"c", b"d", b"e"]
    [listed] = [line for line in ask("transactions", "list")[1].splitlines() if line.startswith(topic)]
    assert "CompleteCommit" in listed


def test_a_transaction_with_a_bad_record_is_aborted(ask, stored, topic, type_in):
    type_in(b"a:1\nb:2\nc\n")
    status, _, err = ask("produce", topic, "--key-separator", ":", "--transactional-id", topic)
    assert (status, err) == (2, "odradek: record 3: no ':' between key and value: c\n")
    assert stored(topic) == []


def test_a_partition_that_does_not_exist_is_named(ask, topic):
    status, _, err = ask("produce", topic, "a", "--partition", 7)
    assert (status, err) == (1, f"odradek: {topic}-7: there is no such topic or partition (UNKNOWN_TOPIC_OR_PARTITION)\n")


def test_a_record_that_is_too_large_is_refused_in_one_line(ask, topic, type_in):
    type_in(b"x" * 2_000_000)
    status, _, err = ask("produce", topic)
    assert (status, err.count("\n"), "MESSAGE_TOO_LARGE" in err) == (1, 1, True)


def test_no_broker_is_one_line(command):
    status, _, err = command("produce", "orders", "a", "-b", "127.0.0.1:1")
    assert (status, err) == (2, "odradek: no broker answers at 127.0.0.1:1: Connect call failed ('127.0.0.1', 1)\n")


def test_where_topics_are_not_created_the_way_out_is_named(broker_process, command):
    broker = broker_process(settings={"auto.create.topics.enable": "false"})
    command("topics", "create", "orders", "-b", broker.address)
    status, _, err = command("produce", "ordres", "a", "-b", broker.address)
    assert status == 1
    assert err == (
        "odradek: ordres: there is no such topic, and the broker creates none: odradek topics create ordres; "
        "did you mean orders? (UNKNOWN_TOPIC_OR_PARTITION)\n"
    )


def test_the_servers_come_from_the_environment(command, broker, topic, stored, monkeypatch):
    monkeypatch.setenv("ODRADEK_BOOTSTRAP", broker.address)
    assert command("produce", topic, "a", "--partition", 0) == (0, "", "")
    assert [record[2] for record in stored(topic)] == [b"a"]


def test_a_line_is_written_as_soon_as_it_is_complete(ask, broker, topic):
    producing = start_command("produce", topic, "-b", broker.address, "-p", 0, stdin=subprocess.PIPE)
    producing.stdin.write(b"first\nsec")
    producing.stdin.flush()
    assert ask("consume", topic, "--count", 1) == (0, "first\n", "")
    producing.stdin.write(b"ond")
    producing.stdin.close()
    assert producing.wait(20) == 0
    assert ask("consume", topic, "--exit-at-end")[1].split() == ["first", "second"]


def test_ctrl_c_ends_it_without_a_traceback(ask, broker, topic):
    reader, writer = os.pipe()
    producing = start_command("produce", topic, "-b", broker.address, stdin=reader, stderr=subprocess.PIPE)
    os.write(writer, b"first\n")
    assert ask("consume", topic, "--count", 1)[1] == "first\n"
    producing.send_signal(signal.SIGINT)
    assert (producing.communicate(timeout=20)[1].strip(), producing.returncode) == (b"", 130)
    os.close(reader)
    os.close(writer)


def test_a_broker_that_is_killed_costs_no_record_and_doubles_none(broker_process, command):
    broker = broker_process()
    repeated = "x", "--count", 600, "--rate", 200
    producing = start_command("produce", "t", "-b", broker.address, *repeated, stderr=subprocess.DEVNULL)
    while command("consume", "t", "-b", broker.address, "--count", 1)[0]:
        pass
    broker.kill9()
    broker.start()
    assert producing.wait(40) == 0
    assert len(command("consume", "t", "-b", broker.address, "--exit-at-end")[1].split()) == 600
