"""Rows of the pipeline's tables, by hand: what does not matter to a test is left out, or is the same in all of them."""

from datetime import UTC, datetime, timedelta
from functools import cache

from pyspark.sql import SparkSession

from odradek.pipeline.schema import local_rows
from odradek.pipeline.tables.schema import TABLES

START = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
NOW_S = 20_000


def reader(spark: SparkSession, tables):
    """Tables by name, of rows that leave out what does not matter."""

    @cache
    def read(name):
        schema = TABLES[name]
        return local_rows(spark, schema, [tuple(map(row.get, schema.names)) for row in tables.get(name, [])])

    return read


def at(seconds):
    return START + timedelta(seconds=seconds)


def generation(group, number, seconds, **columns):
    known = {"group": group, "generation": number, "at": at(seconds), "partition": 0, "offset": number, "state": "Stable"}
    return known | {"member_count": 1, "members": ["m"], "assignment": []} | columns


def change(group, offset, seconds, kind, client_id="client", **columns):
    known = {"group": group, "generation": offset, "at": at(seconds), "change": kind, "client_id": client_id}
    known |= {"client_host": "/10.0.0.1", "member_id": f"{client_id}-{offset}"}
    return known | {"record_partition": 0, "record_offset": offset} | columns


def sample(group, seconds, committed_offset, end_offset, partition=0):
    known = {"group": group, "topic": "t", "partition": partition, "sampled_at": at(seconds)}
    return known | {"committed_offset": committed_offset, "end_offset": end_offset, "lag": end_offset - committed_offset}


def end(seconds, end_offset, topic, partition=0):
    return {"topic": topic, "partition": partition, "end_offset": end_offset, "sampled_at": at(seconds)}


def move(group, offset, seconds, topic, from_member=None, to_member=None, partition=0):
    known = {"group": group, "generation": offset, "at": at(seconds), "topic": topic, "partition": partition}
    known |= {"from_member": from_member, "to_member": to_member, "to_client_id": to_member and f"client of {to_member}"}
    return known | {"record_partition": 0, "record_offset": offset}


def transaction(transactional_id, seconds, total_ms, outcome="committed"):
    known = {"transactional_id": transactional_id, "producer_id": 7, "producer_epoch": 0, "outcome": outcome}
    known |= {"start_at": at(seconds), "completed_at": at(seconds + total_ms / 1000), "timeout_ms": 60_000}
    return known | {"total_ms": total_ms, "ongoing_ms": total_ms, "prepare_ms": 0, "partitions": [("t", 0)], "partition_count": 1}


def opened(transactional_id, status, age_s, in_state_s):
    known = {"transactional_id": transactional_id, "status": status, "start_at": at(NOW_S - age_s)}
    known |= {"last_update_at": at(NOW_S - in_state_s), "partitions": [("t", 0)]}
    return known | {"producer_id": 7, "producer_epoch": 0, "timeout_ms": 60_000}


def delivery(group, seconds, change, count, *, held_ms=None, first=7, last=None, partition=0, since=0, **columns):
    """The end of a delivery of records that came to be available at ``since``."""
    state = {"accepted": "Acknowledged", "returned": "Available", "archiving": "Archiving", "archived": "Archived"}[change]
    known = {"group": group, "topic": "t", "partition": partition, "at": at(seconds), "first_offset": first}
    known |= {"last_offset": first if last is None else last, "records": 1 if last is None else last - first + 1}
    known |= {"change": change, "state": state, "delivery_count": count, "previous_state": "Available"}
    known |= {"previous_delivery_count": count - 1, "held_ms": held_ms, "first_returned_at": at(since)}
    return known | {"record_partition": 0, "record_offset": round(seconds)} | columns


def task_move(group, seconds, from_process, to_process, **columns):
    """A move of a task with state, from a member of one process to one of the other."""
    known = {"group": group, "subtopology": "0", "partition": 1, "generation": round(seconds), "at": at(seconds)}
    known |= {"from_process": from_process, "to_process": to_process, "to_member": f"member of {to_process}"}
    known |= {"from_member": from_process and f"member of {from_process}", "is_stateful": True, "had_standby": False}
    return known | {"away_ms": 7, "record_partition": 0, "record_offset": round(seconds)} | columns


def owning(*counts):
    """A generation whose members have so many partitions."""
    members = [f"m{n}" for n in range(len(counts))]
    assignment = [(name, "t", list(range(count))) for name, count in zip(members, counts, strict=True) if count]
    return {"members": members, "member_count": len(members), "assignment": assignment}
