"""``odradek dump`` of the data directory of a broker that has stopped."""

import json
from uuid import UUID

import confluent_kafka
import pytest

from odradek.cli.dump_records import RecordDecoder, decoder_of
from odradek.protocol.coordinator_records import ShareUpdateKey, ShareUpdateValue, encode_key, encode_value
from odradek.protocol.coordinator_records.share_states import StateBatch
from odradek.protocol.records import Record
from odradek.storage.log.index import OffsetIndex, TimeIndex
from odradek.storage.log.transaction_index import ENTRY


@pytest.fixture(scope="module")
def data_dir(module_broker):
    """The data of a broker with records, transactions, offsets and metadata."""
    servers = {"bootstrap.servers": module_broker.address}
    producer = confluent_kafka.Producer({**servers, "transactional.id": "payments"})
    producer.init_transactions()
    for value, end in ((b"a", producer.commit_transaction), (b"b\xff", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value, b"key", headers=[("trace", b"1")])
        producer.flush()
        end()
    consumer = confluent_kafka.Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    while (message := consumer.poll(1)) is None:
        pass
    consumer.commit(message, asynchronous=False)
    consumer.close()
    module_broker.stop()
    return module_broker.data_dir


@pytest.fixture
def dumped(command):
    """The entries of some paths, without their file; and the exit status."""

    def run(*arguments, status=0):
        found, out, err = command("dump", "--json", *arguments)
        assert found == status, err
        entries = [json.loads(line) for line in out.splitlines()]
        return [{name: value for name, value in entry.items() if name != "file"} for entry in entries]

    return run


def test_a_segment_is_batches_with_records_and_markers(dumped, data_dir):
    entries = dumped(data_dir / "orders-0" / "00000000000000000000.log")
    assert [entry["kind"] for entry in entries] == ["batch", "record"] * 4
    first, aborted = entries[0], entries[5]
    assert (first["base_offset"], first["compression"], first["is_transactional"], first["records"]) == (0, "none", True, 1)
    records = [{key: value for key, value in entry.items() if key != "timestamp"} for entry in entries[1::2]]
    assert records[0] == {"kind": "record", "offset": 0, "key": "key", "value": "a", "headers": [["trace", "1"]]}
    assert [record.get("control") for record in records] == [None, "COMMIT", None, "ABORT"]
    assert aborted["value"] == {"base64": "Yv8="}


def test_batches_are_shown_without_records(dumped, data_dir):
    entries = dumped("--batches", data_dir / "orders-0" / "00000000000000000000.log")
    assert [entry["kind"] for entry in entries] == ["batch"] * 4


def test_a_directory_is_all_its_files(command, data_dir):
    status, out, _ = command("dump", data_dir / "orders-0")
    files = [line.rpartition("/")[2] for line in out.splitlines() if line.startswith("# ")]
    assert status == 0
    assert {"00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.txnindex"} <= set(files)
    assert {"leader-epoch-checkpoint", "partition.metadata"} <= set(files)
    assert "record offset=0 timestamp=20" in out
    assert ' key=key value=a headers=[["trace", "1"]]\n' in out


def test_indexes_snapshots_and_checkpoints_are_read(dumped, data_dir):
    orders = data_dir / "orders-0"
    [aborted] = dumped(orders / "00000000000000000000.txnindex")
    assert (aborted["first_offset"], aborted["last_offset"], aborted["last_stable_offset"]) == (2, 3, 4)
    assert {entry["kind"] for entry in dumped(orders / "00000000000000000000.timeindex")} <= {"entry"}
    assert dumped(orders / "leader-epoch-checkpoint") == [{"kind": "line", "epoch": 0, "start_offset": 0}]
    [snapshot] = orders.glob("*.snapshot")
    [producer] = dumped(snapshot)
    assert (producer["producer_id"], producer["last_offset"], producer["transaction_start"]) == (aborted["producer_id"], 2, None)
    [properties] = dumped(data_dir / "meta.properties")
    assert (properties["kind"], properties["node.id"]) == ("properties", "1")
    recovered = {entry["topic"]: entry["offset"] for entry in dumped(data_dir / "recovery-point-offset-checkpoint")}
    assert recovered["orders"] == 4


def test_an_index_ends_where_kafka_has_preallocated_it(dumped, tmp_path):
    index = tmp_path / "00000000000000000100.index"
    index.write_bytes(OffsetIndex.entry.pack(7, 4200) + bytes(10_000 * OffsetIndex.entry.size))
    assert dumped(index) == [{"kind": "entry", "offset": 107, "position": 4200}]
    times = tmp_path / "00000000000000000100.timeindex"
    times.write_bytes(TimeIndex.entry.pack(0, 0) + TimeIndex.entry.pack(5, 7) + bytes(10_000 * TimeIndex.entry.size))
    assert [(entry["timestamp"], entry["offset"]) for entry in dumped(times)] == [(0, 100), (5, 107)]


def records_of(dumped, data_dir, topic):
    """The records of all partitions of a topic."""
    paths = sorted(data_dir.glob(f"{topic}-*/*.log"))
    return [entry for entry in dumped(*paths) if entry["kind"] == "record"]


def test_the_coordinators_records_are_decoded(dumped, data_dir):
    offsets = [record for record in records_of(dumped, data_dir, "__consumer_offsets") if record["type"] == "OffsetCommit"]
    assert [record["key"] for record in offsets][-1] == {"group": "billing", "topic": "orders", "partition": 0}
    groups = [record for record in records_of(dumped, data_dir, "__consumer_offsets") if record["type"] == "GroupMetadata"]
    assert {record["key"]["group"] for record in groups} == {"billing"}
    transactions = records_of(dumped, data_dir, "__transaction_state")
    assert {record["key"]["transactional_id"] for record in transactions} == {"payments"}
    assert transactions[-1]["value"]["partitions"] == []


def test_the_clusters_metadata_is_decoded(dumped, data_dir):
    records = records_of(dumped, data_dir, "__cluster_metadata")
    topics = {record["value"]["name"] for record in records if record.get("type") == "TopicRecord"}
    assert topics == {"orders", "__consumer_offsets", "__transaction_state"}


def test_damage_is_shown_where_it_is_and_the_status_tells(dumped, command, data_dir, tmp_path):
    data = (data_dir / "orders-0" / "00000000000000000000.log").read_bytes()
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(data[:-1])
    assert dumped(segment, status=1)[-1]["kind"] == "damage"
    assert "bytes of a batch that is not whole\n" in command("dump", segment)[2]
    flipped = bytearray(data)
    flipped[70] ^= 1
    segment.write_bytes(flipped)
    entries = dumped(segment, status=1)
    assert [entry["kind"] for entry in entries] == ["batch", "damage"]
    assert entries[1]["reason"].startswith("CRC is ")
    index = tmp_path / "00000000000000000000.txnindex"
    index.write_bytes(bytes(ENTRY.size + 1))
    assert dumped(index, status=1) == [{"kind": "damage", "reason": "35 bytes are no whole number of entries of 34 bytes"}]


def test_a_file_of_another_kind_is_refused(command, tmp_path):
    (tmp_path / "notes").write_text("x")
    status, out, err = command("dump", tmp_path / "notes", "--json")
    assert (status, out) == (2, "")
    assert err == f"odradek: {tmp_path}/notes is no segment, index, snapshot or checkpoint by its name\n"


def test_the_state_of_share_partitions_is_decoded():
    key = ShareUpdateKey("g", UUID(int=7), 2)
    value = ShareUpdateValue(1, 2, 3, (StateBatch(3, 8, 2, 1),), 6)
    record = Record(key=encode_key(key), value=encode_value(value), timestamp=5)
    found = RecordDecoder(decoder_of("__share_group_state-4"))(record, is_control=False)
    assert found["type"] == "ShareUpdate"
    assert found["key"] == {"group": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAABw", "partition": 2}
    batch = {"first_offset": 3, "last_offset": 8, "delivery_state": 2, "delivery_count": 1}
    assert (found["value"]["state_batches"], found["value"]["delivery_complete_count"]) == ([batch], 6)
