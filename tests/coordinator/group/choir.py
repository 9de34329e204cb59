"""A second kind of group, as small as can be: a choir, whose members are its singers and which reads one topic, its tune.

It is stored as a GroupMetadataValue of the protocol type ``choir``. ``ChoirShard`` is a shard of classic groups and choirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from odradek.coordinator.group.interface import SINCE_COMMIT
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup, DescribedGroupMember
from tests.coordinator.group.offsets_bed import OffsetsBed

CHOIR = "choir"


@dataclass
class Choir:
    """Singers may commit and fetch, in transactions as well; nobody else may."""

    group_id: str
    singers: tuple[str, ...]
    tune: str = "tune"
    is_shown: bool = True
    group_type: str = CHOIR
    protocol_type: str | None = "song"

    @property
    def state(self) -> str:
        return "Singing" if self.singers else "Empty"

    @property
    def is_empty(self) -> bool:
        return not self.singers

    @property
    def member_count(self) -> int:
        return len(self.singers)

    def describe(self) -> DescribedGroup | None:
        if not self.is_shown:
            return None
        members = [DescribedGroupMember(member_id=singer) for singer in self.singers]
        return DescribedGroup(group_id=self.group_id, group_state=self.state, protocol_type="song", members=members)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> ErrorCode:
        if member_id in self.singers:
            return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID

    def permits_late_commit(self, *_: Any) -> bool:
        return False

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE if member_id in self.singers else ErrorCode.UNKNOWN_MEMBER_ID

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def validate_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.singers else ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.singers) and topic == self.tune

    def offsets_expire_since_ms(self) -> int | None:
        return SINCE_COMMIT

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(self.group_id), None)]


def choir_record(group_id: str, *singers: str) -> CoordinatorRecord:
    """The record of a choir."""
    members = tuple(MemberMetadata(singer, None, "c", "/", 0, 0, b"", b"") for singer in singers)
    return CoordinatorRecord(GroupMetadataKey(group_id), GroupMetadataValue(CHOIR, 0, None, None, -1, members))


class ChoirShard:
    """A GroupShard that has choirs besides classic groups; ``alive`` is who has committed to a choir."""

    def __init__(self, shard: Any) -> None:
        self._shard = shard
        self.write_order = shard.write_order
        self.alive: list[str] = []
        shard.groups.add_kind(CHOIR, Choir, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shard, name)

    def restore(self, group_id: str, value: object) -> Choir:
        assert isinstance(value, Choir)
        assert value.group_id == group_id
        return value

    def note_alive(self, group: Any, member_id: str) -> None:
        assert isinstance(group, Choir)
        self.alive.append(member_id)

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        key, value = record
        groups = self._shard.groups
        if isinstance(value, GroupMetadataValue) and value.protocol_type == CHOIR:
            groups.stored[key.group] = Choir(key.group, tuple(member.member_id for member in value.members))
            groups.live.pop(key.group, None)
        elif isinstance(key, GroupMetadataKey) and value is None and isinstance(groups.stored.get(key.group), Choir):
            groups.stored.pop(key.group)
            groups.live.pop(key.group, None)
        else:
            self._shard.replay(record, offset)

    def replay_in_transaction(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        self._shard.replay_in_transaction(record, offset, producer_id)

    def replay_marker(self, marker: Any) -> None:
        self._shard.replay_marker(marker)

    def on_loaded(self, now_ms: int) -> None:
        self._shard.on_loaded(now_ms)

    def on_unloaded(self) -> Any:
        return self._shard.on_unloaded()


class ChoirBed(OffsetsBed):
    """A bed whose shard can have choirs."""

    def _make_shard(self, partition: int, context: Any) -> Any:
        self.shard: Any = ChoirShard(super()._make_shard(partition, context))
        return self.shard
