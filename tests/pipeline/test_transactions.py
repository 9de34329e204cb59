"""States of transactional ids: the forms that are read by columns, and those that are left to be read one by one."""

import struct

from tests.cases import each_case
from tests.pipeline.decoded import (
    BROKEN,
    KEY_OF_TRANSACTION,
    TRANSACTIONS,
    batch_of,
    left_of,
    rows_of,
    rows_one_by_one,
    transaction,
)
from tests.pipeline.record_bytes import array, compact_string


def of_version_0(topics):
    """An open transaction as brokers before 4.0 wrote it, with these bytes for its topics."""
    return TRANSACTIONS, KEY_OF_TRANSACTION, struct.pack(">hqhib", 0, 9, 2, 60_000, 1) + topics + struct.pack(">qq", 6, 5)


@each_case(
    "record",
    [
        (TRANSACTIONS, KEY_OF_TRANSACTION, None),
        *(transaction([("a", 1), ("b", 0)], status) for status in range(8)),
        transaction([("é" * 124, number) for number in range(5000)]),
        transaction([(f"topic-{number}", 0) for number in range(128)]),
        transaction(previous_producer_id=1),
        transaction(next_producer_id=1, client_transaction_version=2),
        transaction(previous_producer_id=1, next_producer_id=2, client_transaction_version=-3),
        of_version_0(struct.pack(">i", 0)),
        of_version_0(struct.pack(">i", -1)),
        of_version_0(struct.pack(">ih1siiih1sii", 2, 1, b"b", 2, 7, 3, 1, b"a", 1, 0)),
    ],
)
def test_what_brokers_write_is_read_by_columns(record):
    assert left_of(record, BROKEN, record) == [1]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


@each_case(
    "record",
    [
        transaction([(f"topic-{number}", 0) for number in range(129)]),
        transaction(status=8),
        transaction(status=-1),
        of_version_0(struct.pack(">ih", 1, -1) + bytes(4)),  # a topic without a name
        of_version_0(struct.pack(">ih1si", 1, 1, b"t", 9)),  # more partitions than there are
        (TRANSACTIONS, KEY_OF_TRANSACTION, b"\0\2" + transaction()[2][2:]),
        # A topic that says it has a tagged field, and has none.
        (TRANSACTIONS, KEY_OF_TRANSACTION, struct.pack(">hqhib", 1, 9, 2, 60_000, 1) + b"\2\2t\1\1" + bytes(17)),
        (TRANSACTIONS, KEY_OF_TRANSACTION, transaction()[2] + b"\0"),
        (TRANSACTIONS, KEY_OF_TRANSACTION, transaction()[2][:-1] + b"\1\3\2\0\1"),  # a next producer epoch
        (TRANSACTIONS, KEY_OF_TRANSACTION[:-1], None),
        (TRANSACTIONS, b"\0\1\0\0", None),
    ],
)
def test_other_forms_are_left_and_nothing_of_them_is_lost(record):
    assert left_of(record) == [0]
    assert rows_of(batch_of(record)) == rows_one_by_one(batch_of(record))


def test_partitions_are_by_topic_and_number_and_each_is_there_once():
    topics = [("b", [2, 0, 2]), ("é", [1]), ("a", [3, -1]), ("b", [1, 0])]
    written = [compact_string(topic) + array([struct.pack(">i", each) for each in parts]) + b"\0" for topic, parts in topics]
    value = struct.pack(">hqhib", 1, 9, 2, 60_000, 1) + array(written) + bytes(17)
    some = [transaction([("z", 0)]), (TRANSACTIONS, KEY_OF_TRANSACTION, value), transaction([("a", 0)])]
    assert left_of(*some) == []
    found = [[(each["topic"], each["partition"]) for each in row["partitions"]] for row in rows_of(batch_of(*some))]
    assert found == [[("z", 0)], [("a", -1), ("a", 3), ("b", 0), ("b", 1), ("b", 2), ("é", 1)], [("a", 0)]]
