"""The registry of a shard's groups of all kinds: one id, one group.

Each kind of group registers its type and the class of its stored form. The registry restores groups from their stored form.
Operations common to all kinds find groups here. A group without a separate live state is its own stored form, and never among
the live groups. Left out: the replay of records, which each kind does itself.

DescribeGroups and ListGroups tell groups of any kind, as of the log's committed offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.timeline import TimelineDict
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_groups import DescribedGroup
from odradek.protocol.message_types.list_groups import ListedGroup

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.interface import Group, GroupKind
    from odradek.coordinator.runtime.timeline import SnapshotRegistry


class GroupRegistry:
    """Owner of the stored and the live groups of one shard. Loop thread only.

    ``stored`` is persistent: only replayed records change it, and it rolls back when an append fails. ``live`` holds the same
    groups as they are now. A live group that is not stored is about to be stored, or its record could not be appended.
    ListGroups, DescribeGroups and DeleteGroups do not see it.
    """

    __slots__ = ("_kinds", "_kinds_by_value", "groups_deleted", "is_loaded", "live", "stored")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self.stored: TimelineDict[str, object] = TimelineDict(snapshots)
        self.live: dict[str, Group] = {}
        self.groups_deleted = 0
        self._kinds: dict[str, GroupKind] = {}
        self._kinds_by_value: dict[type, GroupKind] = {}
        self.is_loaded = False

    def add_kind(self, group_type: str, value_class: type, kind: GroupKind) -> None:
        """Make ``kind`` the owner of the groups of ``group_type``, which are stored as values of ``value_class``."""
        self._kinds[group_type] = kind
        self._kinds_by_value[value_class] = kind

    # ----------------------------------------------------------------------------------------------------------- find

    def find(self, group_id: str) -> Group | None:
        """Return the group as it is now, or None. HOT."""
        group = self.live.get(group_id)
        if group is None and self.is_loaded:
            value = self.stored.get(group_id)
            if value is not None:
                # An offset commit created the group, or the append of its tombstone failed.
                group = self._restore(group_id, value)
        return group

    def find_at(self, group_id: str, committed_offset: int) -> Group | None:
        """Return the group as it is now; None if it does not exist at ``committed_offset`` of the log."""
        return None if self.stored.get_at(group_id, committed_offset) is None else self.find(group_id)

    def find_stored(self, group_id: str) -> Group | None:
        """Return the group as it is now; None if it is not stored."""
        return self.find(group_id) if group_id in self.stored else None

    def groups_at(self, committed_offset: int) -> Iterator[Group]:
        """Iterate over the groups that exist at ``committed_offset`` of the log, each as it is now."""
        for group_id in [group_id for group_id, _ in self.stored.items_at(committed_offset)]:
            group = self.find(group_id)
            if group is not None:
                yield group

    def groups(self) -> list[Group]:
        """Return all groups, including live ones that are not stored. To read them: nothing changes, and no session begins."""
        stored = self.stored.items() if self.is_loaded else ()
        restored = [
            self._kinds_by_value[type(value)].view(group_id, value) for group_id, value in stored if group_id not in self.live
        ]
        return [*self.live.values(), *restored]

    def stored_ids(self) -> Iterable[str]:
        """Return the ids of the groups in the log."""
        return self.stored.keys()

    def forget_unstored(self, group_id: str, _: KafkaError) -> None:
        """Drop an empty live group that other requests found before the append of its first record failed."""
        group = self.live.get(group_id)
        if group is not None and group.is_empty and group_id not in self.stored:
            del self.live[group_id]

    def note_alive(self, group: Group, member_id: str) -> None:
        """Note that a member of ``group`` has committed offsets; its kind may take that as a sign of life. HOT."""
        self._kinds[group.group_type].note_alive(group, member_id)

    # ----------------------------------------------------------------------------------------------- load and unload

    def load(self) -> None:
        """Restore all groups that were replayed. Until then, only live groups are found."""
        self.is_loaded = True
        for group_id, value in self.stored.items():
            self._restore(group_id, value)

    def unload(self) -> None:
        """Drop the live groups, after their kinds have let them go."""
        self.live.clear()

    def _restore(self, group_id: str, value: object) -> Group:
        group = self._kinds_by_value[type(value)].restore(group_id, value)
        if group is not value:
            self.live[group_id] = group
        return group


# The state of a group that does not exist. Since version 6 it comes with an error (KIP-1043).
_DEAD: Final = "Dead"
_NOT_FOUND_SINCE: Final = 6
# The number of groups listed without a pause: half a millisecond.
_TOGETHER: Final = 250


def describe_group(groups: GroupRegistry, group_id: str, version: int, committed_offset: int) -> DescribedGroup:
    """Return the DescribedGroup of DescribeGroups. A group of a kind it does not show is answered as not found."""
    group = groups.find_at(group_id, committed_offset)
    if group is None:
        return _not_found(group_id, version, f"Group {group_id} not found.")
    return group.describe() or _not_found(group_id, version, f"Group {group_id} is not a classic group.")


def group_filter(names: Iterable[str]) -> frozenset[str]:
    """Return a filter for ``list_groups`` from names of states or types, in any case."""
    return frozenset([name.strip().lower() for name in names])


def list_groups(
    groups: GroupRegistry, states: AbstractSet[str], types: AbstractSet[str], committed_offset: int
) -> Generator[None, None, list[ListedGroup]]:
    """List the ListedGroups in ``states`` and of ``types`` (``group_filter``). An empty filter matches everything.

    A generator that pauses now and then. A group that changes meanwhile is listed in its newer state, or not at all.
    """
    found = []
    for place, group in enumerate(groups.groups_at(committed_offset), 1):
        if (not states or group.state.lower() in states) and (not types or group.group_type.lower() in types):
            found.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=str(group.state),
                    group_type=group.group_type,
                )
            )
        if place % _TOGETHER == 0:
            yield None
    return found


def _not_found(group_id: str, version: int, message: str) -> DescribedGroup:
    is_error = version >= _NOT_FOUND_SINCE
    return DescribedGroup(
        group_id=group_id,
        group_state=_DEAD,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
        error_message=message if is_error else None,
    )
