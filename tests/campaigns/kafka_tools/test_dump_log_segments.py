"""Apache Kafka's DumpLogSegments on a log directory of odradek's: it has nothing to complain of, and says what was written."""

import shutil
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

from odradek.common.acls import kafkas_name
from odradek.coordinator.transaction.states import TransactionState
from tests.campaigns.kafka_tools import ledger
from tests.campaigns.kafka_tools.dump_log_segments import DumpedFile, Record, dump

# One process: the log directory is written, and the jars are fetched where they are not in the cache, once.
pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
DELETED = "deleted"
EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
COMMITTED = [TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT]
ABORTED = [TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT]


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> ledger.LogDirectory:
    return ledger.write_ledger(tmp_path_factory.mktemp("kafka-tools") / "data")


@pytest.fixture(scope="module")
def transaction_state(directory) -> dict[Path, DumpedFile]:
    return dump(directory.files("__transaction_state", *SUFFIXES), "--transaction-log-decoder")


@pytest.fixture(scope="module")
def consumer_offsets(directory) -> dict[Path, DumpedFile]:
    return dump(directory.files("__consumer_offsets", *SUFFIXES), "--offsets-decoder")


@pytest.fixture(scope="module")
def records_of_ledger(directory) -> dict[Path, DumpedFile]:
    return dump(directory.files(ledger.TOPIC, *SUFFIXES), "--print-data-log")


@pytest.fixture
def transactions(transaction_state) -> dict[str, list[dict]]:
    """The values of each transactional id, in the order of the log."""
    values = defaultdict(list)
    for record in all_records(transaction_state):
        values[record.key["data"]["transactionalId"]].append(record.payload["data"])
    return dict(values)


@pytest.fixture
def partitions(records_of_ledger) -> dict[int, DumpedFile]:
    """The ledger's logs."""
    logs = [file for path, file in records_of_ledger.items() if path.suffix == ".log"]
    return dict(enumerate(logs))


def all_records(files: dict[Path, DumpedFile]) -> list[Record]:
    return [record for file in files.values() for record in file.records]


def beside(files: dict[Path, DumpedFile], suffix: str) -> dict[int, list[dict[str, str]]]:
    """The entries of the ledger's files of one kind, by partition."""
    return {int(path.parent.name.rpartition("-")[2]): file.entries for path, file in files.items() if path.suffix == suffix}


def fates(records: list[Record]) -> tuple[list[Record], list[Record], list[Record]]:
    """Committed and plain records, aborted ones, and those of transactions that are open, as the log's markers say."""
    committed, aborted, pending = [], [], defaultdict(list)
    for record in records:
        producer_id, _ = record.producer
        if record.marker is not None:
            (committed if record.marker == "COMMIT" else aborted).extend(pending.pop(producer_id))
        else:
            (pending[producer_id] if record.is_transactional else committed).append(record)
    return committed, aborted, [record for left in pending.values() for record in left]


def payloads(records: list[Record]) -> list[str]:
    return [record.payload for record in records]


def test_the_states_of_each_transactional_id_are_told_in_their_order(transactions):
    states = {
        name: [state for state, _ in groupby(value["transactionStatus"] for value in of)] for name, of in transactions.items()
    }
    expected = {
        "committed": [EMPTY, ONGOING, *COMMITTED],
        "aborted": [EMPTY, ONGOING, *ABORTED],
        "newest": [EMPTY, ONGOING, *COMMITTED, ONGOING, *ABORTED],
        "idle": [EMPTY],
        "open": [EMPTY, ONGOING],
    }
    assert states == {name: [kafkas_name(state) for state in of] for name, of in expected.items()}


def test_an_open_transaction_names_its_partitions_and_an_ended_one_none(transactions, consumer_offsets):
    (of_group,) = {
        int(path.parent.name.rpartition("-")[2])
        for path, file in consumer_offsets.items()
        if any(record.key and record.key["data"].get("group") == ledger.GROUP for record in file.records)
    }
    assert transactions["open"][-1]["transactionPartitions"] == [
        {"topic": "__consumer_offsets", "partitionIds": [of_group]},
        {"topic": ledger.TOPIC, "partitionIds": [0]},
    ]
    assert transactions["committed"][-1]["transactionPartitions"] == []


def test_the_producer_id_in_the_transaction_log_is_the_one_in_the_records(transactions, partitions):
    written = {record.payload.rpartition("-")[0]: record.producer[0] for record in all_records(partitions) if record.payload}
    for name in ("committed", "aborted", "newest", "open"):
        assert {value["producerId"] for value in transactions[name]} == {written[name]}


def test_each_end_of_a_newest_clients_transaction_is_of_the_next_epoch(transactions, partitions):
    assert [epoch for epoch, _ in groupby(value["producerEpoch"] for value in transactions["newest"])] == [0, 1, 2]
    (producer_id,) = {value["producerId"] for value in transactions["newest"]}
    written = [(record.payload or record.marker, record.producer[1]) for record in partitions[0].records]
    of_newest = [entry for entry, record in zip(written, partitions[0].records, strict=True) if record.producer[0] == producer_id]
    assert of_newest == [("newest-0", 0), ("COMMIT", 1), ("newest-1", 1), ("ABORT", 2)]


@pytest.mark.parametrize("partition", [0, 1])
def test_the_markers_in_a_partition_say_what_was_committed(partitions, partition):
    committed, aborted, pending = map(payloads, fates(partitions[partition].records))
    assert committed == ledger.COMMITTED_VALUES[partition]
    assert aborted == ledger.ABORTED_VALUES[partition]
    assert pending == ledger.OPEN_VALUES[partition]


@pytest.mark.parametrize("partition", [0, 1])
def test_the_transaction_index_lists_the_aborted_transactions(partitions, records_of_ledger, partition):
    _, aborted, _ = fates(partitions[partition].records)
    listed = beside(records_of_ledger, ".txnindex")[partition]
    # Each has one record, and its marker comes next; nothing else is open meanwhile.
    assert [(int(entry["producerId"]), int(entry["firstOffset"]), int(entry["lastOffset"])) for entry in listed] == [
        (record.producer[0], record.offset, record.offset + 1) for record in aborted
    ]
    assert [int(entry["lastStableOffset"]) for entry in listed] == [record.offset + 2 for record in aborted]


@pytest.mark.parametrize("partition", [0, 1])
def test_the_producer_snapshot_has_the_last_of_each_producer(partitions, records_of_ledger, partition):
    records = [record for record in partitions[partition].records if record.producer[0] >= 0]
    last_epochs = {record.producer[0]: record.producer[1] for record in records}
    _, _, pending = fates(records)
    open_since = {record.producer[0]: f"OptionalLong[{record.offset}]" for record in pending}
    assert {
        int(entry["producerId"]): (int(entry["producerEpoch"]), entry["currentTxnFirstOffset"])
        for entry in beside(records_of_ledger, ".snapshot")[partition]
    } == {producer: (epoch, open_since.get(producer, "OptionalLong.empty")) for producer, epoch in last_epochs.items()}


@pytest.mark.parametrize("partition", [0, 1])
def test_the_index_leads_to_the_batches(partitions, records_of_ledger, partition):
    # The first batch of a segment has no entry: who finds none begins at the segment's start.
    batches = {batch["lastOffset"]: batch["position"] for batch in partitions[partition].batches[1:]}
    entries = {entry["offset"]: entry["position"] for entry in beside(records_of_ledger, ".index")[partition]}
    assert entries == batches


def committed_offsets(files: dict[Path, DumpedFile]) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """The offsets that are committed, and those that an open transaction has pending, as a coordinator would load them."""
    offsets, waiting = {}, {}
    for file in files.values():
        committed, _, pending = fates(file.records)
        for into, records in ((offsets, committed), (waiting, pending)):
            for record in records:
                if record.key["type"] != "1":
                    continue
                key = record.key["data"]["group"], record.key["data"]["partition"]
                into[key] = DELETED if record.payload is None else record.payload["data"]["offset"]
    return offsets, waiting


def test_the_offsets_are_those_that_were_committed(consumer_offsets):
    offsets, pending = committed_offsets(consumer_offsets)
    assert offsets == {
        **ledger.COMMITTED_OFFSETS,
        (ledger.LONE_GROUP, 1): DELETED,
        (ledger.DELETED_GROUP, 0): DELETED,
    }
    assert pending == ledger.PENDING_OFFSETS


def test_a_groups_generations_are_told_with_members_and_assignment(consumer_offsets):
    groups = [record for record in all_records(consumer_offsets) if record.key and record.key["type"] == "2"]
    generations = [record.payload["data"] for record in groups if record.key["data"]["group"] == ledger.GROUP]
    with_member = generations[-2]
    (member,) = with_member["members"]
    assert (with_member["generation"], with_member["protocolType"], with_member["protocol"]) == (1, "consumer", "range")
    assert (member["clientId"], member["clientHost"]) == ("reader", "/127.0.0.1")
    assert member["memberId"] == with_member["leader"]
    assert member["subscription"]["topics"] == [ledger.TOPIC]
    assert member["assignment"]["assignedPartitions"] == [{"topic": ledger.TOPIC, "partitions": [0, 1]}]
    assert (generations[-1]["generation"], generations[-1]["members"]) == (2, [])


def test_a_group_of_the_consumer_protocol_is_told_in_all_its_records(consumer_offsets):
    told = defaultdict(list)
    for record in all_records(consumer_offsets):
        if record.key and record.key["data"].get("groupId") == ledger.MODERN_GROUP:
            told[record.key["type"]].append((record.key["data"], record.payload and record.payload["data"]))
    # The group's epoch, members, target assignment and their parts of it, what they have; a regular expression.
    assert set(told) == {"3", "5", "6", "7", "8", "16"}
    one, other = (key["memberId"] for key, value in told["5"] if value)
    assert [value["topics"] for _, value in told["16"] if value] == [[ledger.TOPIC]]
    given = [(key["memberId"], value["topicPartitions"][0]["partitions"]) for key, value in told["7"] if value]
    assert given[0] == (one, [0, 1])
    assert {member: len(partitions) for member, partitions in given[1:]} == {one: 1, other: 1}
    # The other one has a partition after the first has given it up, and leaves; the group's epoch rises last.
    steps = [(key["memberId"], value and (value["memberEpoch"], value["state"])) for key, value in told["8"]]
    assert (one, (2, 1)) in steps
    assert steps[-3:] == [(one, (3, 0)), (other, (3, 0)), (other, None)]
    assert [told[kind][-1][1] for kind in ("5", "7", "8", "16")] == [None] * 4
    assert told["3"][-1][1]["epoch"] == 4


def test_a_deleted_group_ends_in_a_tombstone(consumer_offsets):
    groups = [record for record in all_records(consumer_offsets) if record.key and record.key["type"] == "2"]
    assert [record.payload for record in groups if record.key["data"]["group"] == ledger.DELETED_GROUP][-1] is None


def test_what_the_controller_wrote_is_read_as_well(directory):
    files = dump(directory.files("__cluster_metadata", *SUFFIXES), "--cluster-metadata-decoder")
    topics = {record.payload["data"]["name"] for record in all_records(files) if record.payload["type"] == "TOPIC_RECORD"}
    assert topics == {ledger.TOPIC, "__consumer_offsets", "__transaction_state"}


def test_a_snapshot_of_the_metadata_is_read_from_its_header_to_its_footer(directory):
    *_, newest = directory.files("__cluster_metadata", ".checkpoint")
    (file,) = dump([newest], "--cluster-metadata-decoder").values()
    header, *records, footer = file.records
    assert (header.marker, footer.marker) == ("SnapshotHeader", "SnapshotFooter")
    assert [record.offset for record in file.records] == list(range(len(file.records)))
    types = [record.payload["type"] for record in records]
    assert types[:2] == ["FEATURE_LEVEL_RECORD"] * 2
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} < set(types)


def test_the_indexes_pass_the_check_of_a_kafka_that_starts(directory):
    indexes = directory.files("*", ".index", ".timeindex")
    printed = dump(indexes, "--index-sanity-check")
    assert len(printed) == len(indexes)


def test_damage_would_be_complained_of(directory, tmp_path):
    copy = tmp_path / f"{ledger.TOPIC}-0"
    shutil.copytree(directory.path / copy.name, copy)
    log = next(copy.glob("*.log"))
    damaged = bytearray(log.read_bytes())
    damaged[-1] ^= 1
    log.write_bytes(damaged)
    with pytest.raises(AssertionError, match="isvalid: false"):
        dump([log])
