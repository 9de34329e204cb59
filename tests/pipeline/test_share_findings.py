"""Findings about share groups: records that fail again and again, and records that come back as late as locks expire."""

import json
from collections import defaultdict

import pytest

from odradek.pipeline.findings.finding import FINDING, Thresholds
from odradek.pipeline.findings.shares import archived_records, held_records, redelivered_records
from tests.pipeline.table_rows import at, delivery, reader

KINDS_OF_SHARES = {"poison_record", "held_record"}


def batch(state, count, first=7, last=7, seconds=100):
    return (first, last, state, count, at(seconds), at(50))


HISTORY = {
    "share_deliveries": [
        # One record is archived at the limit, a second one goes to the dead-letter queue, a third one is rejected at once.
        delivery("poisoned", 100, "archived", 5, since=40),
        delivery("poisoned", 110, "archiving", 3, first=9, since=60),
        delivery("poisoned", 111, "archived", 3, first=9, since=60, previous_state="Archiving"),
        delivery("choosy", 100, "archived", 1),
        # A lock of 30 s expires five times; twice; on time but with an hour between them; and releases that are too quick.
        *(delivery("held", 31 * n, "returned", n, held_ms=30_000 + n, last=9) for n in range(1, 6)),
        *(delivery("held twice", 31 * n, "returned", n, held_ms=30_000) for n in range(1, 3)),
        *(delivery("held at times", 3600 * n, "returned", n, held_ms=30_000) for n in range(1, 6)),
        *(delivery("released", 10 * n, "returned", n, held_ms=10_000) for n in range(1, 6)),
        *(delivery("left lying", 100 * n, "returned", n, held_ms=100_000) for n in range(1, 6)),
        # One lock, of many records that did not come in one batch.
        *(delivery("at once", 31, "returned", 2, held_ms=30_000, first=10 * n) for n in range(5)),
    ],
    "share_partitions_now": [
        {"group": group, "topic": "t", "partition": 0, "start_offset": 7, "batches": batches}
        for group, batches in {
            "failing": [batch("Available", 3), batch("Available", 4, 10, 19), batch("Available", 2, 20, 29)],
            "recovered": [batch("Acknowledged", 4), batch("Archived", 5, 8, 8), batch("Available", 2, 10, 10)],
        }.items()
    ],
    "groups_now": [
        {"group": "held", "group_type": "Share", "members": [member]}
        for member in [("m", None, "slow", "/h", None, None, ["t"], [{"topic": "t", "partitions": [0, 1]}])]
    ],
}


@pytest.fixture(scope="module")
def found(spark_session):
    read = reader(spark_session, HISTORY)
    frames = [each(read, Thresholds()) for each in (archived_records, redelivered_records, held_records)]
    rows = [row.asDict() | {"evidence": json.loads(row.evidence)} for frame in frames for row in frame.collect()]
    by_subject = defaultdict(list)
    for row in rows:
        by_subject[row["kind"], row["subject"]].append(row)
    return by_subject


def test_a_record_that_is_archived_after_several_deliveries_is_poison(found):
    [row] = found["poison_record", "poisoned"]
    assert (row["severity"], row["from_time"], row["to_time"]) == ("high", naive(0), naive(300))
    first_returned_at = row["evidence"].pop("first_returned_at")
    assert first_returned_at.startswith("2026-03-01T03:00:40")
    figures = {"records": 2, "offsets": [7, 9], "deliveries": 5, "to_dead_letter_queue": 1}
    assert row["evidence"] == {"what": "archived", "topic": "t", "partition": 0, **figures}


def test_a_record_that_is_to_be_delivered_again_is_poison_for_now(found):
    [row] = found["poison_record", "failing"]
    assert (row["severity"], row["from_time"], row["to_time"]) == ("medium", naive(50), naive(100))
    figures = {"records": 11, "offsets": [7, 10], "deliveries": 4}
    assert row["evidence"] == {"what": "delivered again", "topic": "t", "partition": 0, **figures}


def test_records_that_come_back_as_late_as_locks_expire_are_held(found):
    [row] = found["held_record", "held"]
    assert (row["severity"], row["from_time"], row["to_time"]) == ("medium", naive(31), naive(155))
    held = {"held_ms": 30_003, "held_ms_min": 30_001, "held_ms_max": 30_005}
    figures = {"returns": 5, "records": 15, "offsets": [7], "clients": ["slow"]}
    assert row["evidence"] == {"topic": "t", "partition": 0, **figures, **held}


def test_there_are_no_other_findings_and_none_lacks_a_column(found):
    subjects = {("poison_record", "poisoned"), ("poison_record", "failing"), ("held_record", "held")}
    assert found.keys() == subjects
    assert {kind for kind, _ in found} == KINDS_OF_SHARES
    rows = [row for rows in found.values() for row in rows]
    assert [row for row in rows for column in FINDING.names if row[column] is None] == []
    assert len({row["id"] for row in rows}) == len(rows)


def naive(seconds):
    """A time as Spark hands it out."""
    return at(seconds).replace(tzinfo=None)
