"""Members of both protocols, one request at a time; what each is answered and what the group's log has, with names for ids.

Topic ids are the topics' names, member ids that the broker made are those of its members here (``$a``), and times are left out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from odradek.coordinator.runtime.result import decode_group_record, encode_record
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import GroupMetadataValue, OffsetCommitKey
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.migration_bed import assignment, subscription
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

TOPIC, OTHER = "t", "u"
PARTITIONS = 4
OFFSETS_PARTITIONS = 1
_MOVING = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
_PATIENCE_S = 30.0


class Steps:
    """One group of one broker. Every method is a step, whose answer is a line of ``told``."""

    def __init__(self, address: str, group_id: str) -> None:
        self._address = address
        host, port = address.split(":")
        self._connect = lambda: RawClient(host, int(port))
        self._client = self._connect()
        self._group_id = group_id
        self._ids: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._held: dict[str, RawClient] = {}
        self.told: list[str] = []
        self._topics = topic_ids(self._client)
        # Who asks for a group's coordinator has its topic made.
        self._call(ApiKey.FIND_COORDINATOR, 3, {"key": group_id})

    # ------------------------------------------------------------------------------------------- the consumer protocol

    def beat(
        self, who: str, epoch: int | None = None, *, owned: Mapping[str, Sequence[int]] | None = None, **fields: Any
    ) -> None:
        """A heartbeat with the epoch that the member was told last; a full one to join."""
        epoch = self._generations.get(who, 0) if epoch is None else epoch
        if epoch == 0:
            fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [TOPIC], **fields}
            owned = owned or {}
        ids = {name: topic_id for topic_id, name in self._topics.items()}
        partitions = (
            None if owned is None else [{"topic_id": ids[name], "partitions": list(each)} for name, each in owned.items()]
        )
        request = {"group_id": self._group_id, "member_id": who, "member_epoch": epoch, "topic_partitions": partitions, **fields}
        answer = self._call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
        line = f"{who}: {ErrorCode(answer.error_code).name}"
        if answer.error_code == ErrorCode.NONE:
            self._generations[who] = answer.member_epoch
            line += f" epoch={answer.member_epoch}"
            if answer.assignment is not None:
                line += (
                    f" has={shown({self._topics[each.topic_id]: each.partitions for each in answer.assignment.topic_partitions})}"
                )
        self.told.append(line)

    # --------------------------------------------------------------------------------------------- the classic protocol

    def join(self, who: str, *, is_held: bool = False, **options: Any) -> None:
        """A JoinGroup; one that is given a member id comes again with that. One ``is_held`` is answered by ``joined``."""
        request = self._join_request(who, **options)
        answer = self._call(ApiKey.JOIN_GROUP, 9, request) if not is_held or not request["member_id"] else None
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._ids[who] = answer.member_id
            request["member_id"] = answer.member_id
            answer = None if is_held else self._call(ApiKey.JOIN_GROUP, 9, request)
        if answer is None:
            self._held[who] = client = self._connect()
            client.send(ApiKey.JOIN_GROUP, 9, **request)
            # Held once another request for the group, on a later connection, is answered.
            time.sleep(0.2)
            return
        self._joined(who, answer)

    def joined(self, who: str) -> None:
        """The answer to a JoinGroup that was held."""
        self._joined(who, self._held[who].receive(ApiKey.JOIN_GROUP, 9))

    def _join_request(
        self,
        who: str,
        names: Sequence[str] = (TOPIC,),
        owned: Mapping[str, Sequence[int]] | None = None,
        instance_id: str | None = None,
        protocols: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        member_id: str | None = None,
    ) -> dict[str, Any]:
        metadata = subscription(names, owned)
        return {
            "group_id": self._group_id,
            "member_id": self._ids.get(who, "") if member_id is None else member_id,
            "group_instance_id": instance_id,
            "protocol_type": protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name in protocols],
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
        }

    def _joined(self, who: str, answer: Any) -> None:
        line = f"{who}: join {ErrorCode(answer.error_code).name}"
        if answer.error_code == ErrorCode.NONE:
            self._ids[who] = answer.member_id
            self._generations[who] = answer.generation_id
            members = [self._name(each.member_id) for each in answer.members]
            line += (
                f" {self._name(answer.member_id)} generation={answer.generation_id} {answer.protocol_type}/{answer.protocol_name}"
            )
            line += f" leader={self._name(answer.leader)} members={sorted(members)} skip={answer.skip_assignment}"
        self.told.append(line)

    def sync(self, who: str, shares: Mapping[str, Mapping[str, Sequence[int]]] | None = None, **fields: Any) -> None:
        """A SyncGroup, of the leader with ``shares``."""
        given = [{"member_id": self._ids[each], "assignment": assignment(share)} for each, share in (shares or {}).items()]
        request = {"protocol_type": "consumer", "protocol_name": "range", **self._place(who), "assignments": given, **fields}
        answer = self._call(ApiKey.SYNC_GROUP, 5, request)
        has = shown(dict(assigned_partitions(answer.assignment))) if answer.error_code == ErrorCode.NONE else ""
        version = int.from_bytes(answer.assignment[:2]) if has else ""
        line = f"{who}: sync {ErrorCode(answer.error_code).name} {has} {version} {answer.protocol_type}/{answer.protocol_name}"
        self.told.append(line)

    def heartbeat(self, who: str, **fields: Any) -> None:
        """A classic member's."""
        answer = self._call(ApiKey.HEARTBEAT, 4, {**self._place(who), **fields})
        self.told.append(f"{who}: heartbeat {ErrorCode(answer.error_code).name}")

    def leave(self, *identities: tuple[str, str | None]) -> None:
        """A LeaveGroup: (member, "" for none, and instance id)."""
        members = [{"member_id": self._ids.get(who, who), "group_instance_id": each} for who, each in identities]
        answer = self._call(ApiKey.LEAVE_GROUP, 5, {"group_id": self._group_id, "members": members})
        codes = [ErrorCode(each.error_code).name for each in answer.members]
        self.told.append(f"leave {ErrorCode(answer.error_code).name} {codes}")

    def commit(self, who: str, offset: int) -> None:
        """An OffsetCommit of a member of either protocol."""
        topics = [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": offset}]}]
        place = {"group_id": self._group_id, "member_id": self._ids.get(who, who)}
        request = {**place, "generation_id_or_member_epoch": self._generations.get(who, -1), "topics": topics}
        answer = self._call(ApiKey.OFFSET_COMMIT, 9, request)
        self.told.append(f"{who}: commit {ErrorCode(answer.topics[0].partitions[0].error_code).name}")

    def fetch(self) -> None:
        """What is committed, as anybody may ask."""
        asked = [{"group_id": self._group_id, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]
        answer = self._call(ApiKey.OFFSET_FETCH, 8, {"groups": asked})
        self.told.append(f"committed {answer.groups[0].topics[0].partitions[0].committed_offset}")

    def listed(self) -> None:
        """The group as ListGroups has it."""
        groups = self._call(ApiKey.LIST_GROUPS, 5, {}).groups
        found = [(each.protocol_type, each.group_state, each.group_type) for each in groups if each.group_id == self._group_id]
        self.told.append(f"listed {found}")

    # ----------------------------------------------------------------------------------------------------- the records

    def records(self) -> list[str]:
        """The group's records in the log, those of offsets apart."""
        return [self._record(key, value) for key, value in log_of(self._address) if self._is_own(key)]

    def written_otherwise(self) -> list[tuple[Any, bytes]]:
        """The records of the log that odradek would write with other bytes."""
        found = []
        for key, value in bytes_of_log(self._address):
            record = decode_group_record(key, value)
            if record is not None and encode_record(record) != (key, value):
                found.append((record, value or b""))
        return found

    def close(self) -> None:
        for client in (self._client, *self._held.values()):
            client.socket.close()

    def _is_own(self, key: Any) -> bool:
        return getattr(key, "group", "") == self._group_id and not isinstance(key, OffsetCommitKey)

    def _record(self, key: Any, value: Any) -> str:
        if isinstance(value, ConsumerGroupMetadataValue):
            value = value._replace(metadata_hash=int(value.metadata_hash != 0))
        elif isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            value = value._replace(assignment_timestamp_ms=int(value.assignment_timestamp_ms > 0))
        elif isinstance(value, GroupMetadataValue):
            value = value._replace(current_state_timestamp_ms=0, members=tuple(sorted(value.members)))
        return self._named(f"{key} {value}")

    def _named(self, text: str) -> str:
        for topic_id, name in self._topics.items():
            text = text.replace(repr(topic_id), f"<{name}>")
        for name, member_id in sorted(self._ids.items()):
            text = text.replace(member_id, f"${name}")
        return text.replace(self._group_id, "g")

    def _name(self, member_id: str) -> str:
        return self._named(member_id) or "nobody"

    def _place(self, who: str) -> dict[str, Any]:
        generation = self._generations.get(who, -1)
        return {"group_id": self._group_id, "member_id": self._ids.get(who, who), "generation_id": generation}

    def _call(self, api_key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._client.call(api_key, version, **request)
            if getattr(answer, "error_code", ErrorCode.NONE) not in _MOVING or time.monotonic() > deadline_s:
                return answer
            time.sleep(0.1)


def topic_ids(client: RawClient) -> dict[UUID, str]:
    """The names of topics by id; the two are made if they are not there."""
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in ((TOPIC, PARTITIONS), (OTHER, 1))
    ]
    client.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=10_000)
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        found = client.call(ApiKey.METADATA, 12, topics=[{"name": TOPIC}, {"name": OTHER}]).topics
        if all(each.error_code == ErrorCode.NONE for each in found) or time.monotonic() > deadline_s:
            return {each.topic_id: each.name for each in found}
        time.sleep(0.1)


def log_of(address: str) -> list[tuple[Any, Any]]:
    """All records of ``__consumer_offsets``, decoded."""
    found = [decode_group_record(key, value) for key, value in bytes_of_log(address)]
    return [(record.key, record.value) for record in found if record is not None]


def bytes_of_log(address: str) -> list[tuple[bytes, bytes | None]]:
    """All records of ``__consumer_offsets``: key and value."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
    partition = TopicPartition("__consumer_offsets", 0)
    _, end = consumer.get_watermark_offsets(partition, _PATIENCE_S)
    consumer.assign([TopicPartition("__consumer_offsets", 0, 0)])
    found = []
    position = 0
    while position < end:
        message = consumer.poll(_PATIENCE_S)
        assert message is not None
        assert message.error() is None
        position = message.offset() + 1
        found.append((message.key(), message.value()))
    consumer.close()
    return found


def shown(by_topic: Mapping[str, Sequence[int]]) -> str:
    return ",".join(f"{name}:{'.'.join(map(str, sorted(each)))}" for name, each in sorted(by_topic.items())) or "-"
