"""A cluster's responses about its groups, their offsets and its transactional ids, and the tables' content: equal rows.

The Admin client in Spark's own JVM asks: ListGroups, DescribeGroups, OffsetFetch, ListTransactions and DescribeTransactions. It
doesn't know share and streams groups; DescribeShareGroupOffsets and StreamsGroupDescribe are asked for without it. A row is a
key (a tuple of strings and numbers) and its content.
"""

from typing import Any, Self

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from odradek.pipeline.tables import read_table
from tests.campaigns.pipeline_differential import streams
from tests.campaigns.pipeline_differential.shares import start_offsets

Rows = dict[tuple, Any]
# A group that never had members.
_NO_MEMBERS_YET = ("Empty", "", [])


class Answers:
    """The cluster at ``address``; groups whose names begin with ``passed_over`` are ignored."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._address = address
        self._jvm = spark.sparkContext._jvm
        settings = self._jvm.java.util.HashMap()
        settings.put("bootstrap.servers", address)
        self._admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)

    def rows(self) -> dict[str, Rows]:
        """All rows: ``groups``, ``offsets``, ``transactional_ids``, ``share_partitions``, ``tasks``."""
        groups = [each.groupId() for each in self._admin.listConsumerGroups().all().get()]
        offsets = self._offsets(groups)
        having_offsets = {group for group, _, _ in offsets}
        described = self._groups(groups)
        return {
            # The log has nothing of a group whose only offsets were those of an aborted transaction.
            "groups": {key: said for key, said in described.items() if said != _NO_MEMBERS_YET or key[0] in having_offsets},
            "offsets": offsets,
            "transactional_ids": self._transactional_ids(),
            "share_partitions": start_offsets(self._address),
            "tasks": streams.tasks(self._address),
        }

    def _groups(self, names: list[str]) -> Rows:
        described = self._admin.describeConsumerGroups(self._list(names)).all().get()
        return {(name,): _described_group(described.get(name)) for name in names}

    def _offsets(self, groups: list[str]) -> Rows:
        rows = {}
        for group in groups:
            found = self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            for place in found.keySet():
                said = found.get(place)
                epoch = said.leaderEpoch()
                rows[group, place.topic(), place.partition()] = (
                    said.offset(),
                    said.metadata(),
                    epoch.get() if epoch.isPresent() else -1,
                )
        return rows

    def _transactional_ids(self) -> Rows:
        listed = {each.transactionalId(): each for each in self._admin.listTransactions().all().get()}
        described = self._admin.describeTransactions(self._list(list(listed))).all().get()
        rows = {}
        for name, in_list in listed.items():
            said = described.get(name)
            assert (in_list.producerId(), in_list.state()) == (said.producerId(), said.state())
            start = said.transactionStartTimeMs()
            rows[(name,)] = (
                said.producerId(),
                said.producerEpoch(),
                said.state().toString(),
                said.transactionTimeoutMs(),
                start.getAsLong() if start.isPresent() else None,
                sorted((each.topic(), each.partition()) for each in said.topicPartitions()),
            )
        return rows

    def _list(self, names: list[str]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for name in names:
            found.add(name)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error) -> None:
        self._admin.close()


def _described_group(group: Any) -> tuple:
    members = sorted(
        (
            member.consumerId(),
            member.groupInstanceId().orElse(None),
            member.clientId(),
            member.host(),
            sorted((each.topic(), each.partition()) for each in member.assignment().topicPartitions()),
        )
        for member in group.members()
    )
    return group.state().toString(), group.partitionAssignor(), members


def table_rows(spark: SparkSession, warehouse: str) -> dict[str, Rows]:
    """The tables' rows, in the form of ``Answers.rows``."""
    now = read_table(spark, warehouse, "groups_now").where("group_type != 'Share'")
    groups: Rows = {(row.group,): _stored_group(row) for row in now.collect()}
    offsets: Rows = {
        (row.group, row.topic, row.partition): (row.committed_offset, row.metadata, row.leader_epoch)
        for row in read_table(spark, warehouse, "offsets_now").collect()
    }
    # The log has no further facts about a group with offsets that never had members.
    groups = {(group,): _NO_MEMBERS_YET for group, _, _ in offsets} | groups
    ids = read_table(spark, warehouse, "transactional_ids_now").withColumn("start_ms", f.unix_millis("start_at"))
    transactional_ids: Rows = {
        (row.transactional_id,): (
            row.producer_id,
            row.producer_epoch,
            row.status,
            row.timeout_ms,
            row.start_ms,
            sorted((each.topic, each.partition) for each in row.partitions),
        )
        for row in ids.collect()
    }
    shares: Rows = {
        (row.group, row.topic, row.partition): -1 if row.start_offset is None else row.start_offset
        for row in read_table(spark, warehouse, "share_partitions_now").collect()
    }
    tasks: Rows = {
        (row.group, row.subtopology, row.partition): (row.member_id, sorted(row.standby))
        for row in read_table(spark, warehouse, "tasks_now").collect()
    }
    return {
        "groups": groups,
        "offsets": offsets,
        "transactional_ids": transactional_ids,
        "share_partitions": shares,
        "tasks": tasks,
    }


def _stored_group(row: Any) -> tuple:
    members = sorted(
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            sorted((each.topic, partition) for each in member.assignment for partition in each.partitions),
        )
        for member in row.members
    )
    return row.state, row.protocol or "", members


def differences(answers: dict[str, Rows], tables: dict[str, Rows]) -> tuple[dict[str, int], list[str]]:
    """(rows compared by kind, differences)."""
    counts, found = {}, []
    for kind, rows in answers.items():
        keys = sorted(rows.keys() | tables[kind].keys())
        counts[kind] = len(keys)
        for key in keys:
            said, stored = rows.get(key), tables[kind].get(key)
            if said != stored:
                found.append(f"{kind} {key}: the cluster says {said}, the tables {stored}")
    return counts, found
