"""The part that the owners of consumer, share and streams groups have in common: finding, sessions, removal and replay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar, cast

from odradek.coordinator.group.consumer.topics import TopicHashes
from odradek.coordinator.group.modern_group import ModernGroup
from odradek.coordinator.group.sessions import NOTHING_DECIDED, MemberSessions
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.consumer.topics import Topics
    from odradek.coordinator.group.interface import Group
    from odradek.coordinator.group.modern_group import ModernMember, RecordKeys
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorResult


class GroupTimes(Protocol):
    """The part of a group's configs that all three kinds have."""

    @property
    def session_timeout_ms(self) -> int:
        """Return how long a member may be silent."""


ConfigT = TypeVar("ConfigT", bound=GroupTimes)
GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any])


class ModernGroups(ABC, Generic[GroupT, ConfigT]):
    """Owner of one type of groups in the shard's ``registry``, which are their own stored form. Loop thread only.

    An expired session removes a member. ``heartbeats`` (granted ones), ``sessions_expired`` and ``epochs_raised`` count since the
    shard was loaded.
    """

    # The name of the things that members give up.
    holdings: ClassVar[str] = "partitions"

    __slots__ = (
        "_by_id",
        "_group_type",
        "_hashes",
        "_keys",
        "_of",
        "_remove",
        "_stored",
        "clock",
        "config_of",
        "epochs_raised",
        "heartbeats",
        "registry",
        "reports",
        "sessions",
        "sessions_expired",
        "timers",
        "topics",
    )

    def __init__(
        self,
        group_type: str,
        of: type[GroupT],
        keys: RecordKeys,
        registry: GroupRegistry,
        topics: Topics,
        config_of: Callable[[str], ConfigT],
        timers: ShardContext,
        reports: GroupReports,
        remove: Callable[[GroupT, Any, str], CoordinatorResult[None]],
    ) -> None:
        """``of`` is the groups' class, ``keys`` are those of their records. ``remove`` decides to remove a member."""
        self._group_type = group_type
        self._of = of
        self._keys = keys
        self.registry = registry
        self._stored = registry.stored
        # The stored groups, and some whose records were rolled back.
        self._by_id: dict[str, GroupT] = {}
        self._hashes = TopicHashes(topics)
        self.topics = topics
        self.config_of = config_of
        self.clock = timers.clock
        self.timers = timers
        self.reports = reports
        self._remove: Final = remove
        self.heartbeats = 0
        self.sessions_expired = 0
        self.epochs_raised = 0
        self.sessions = MemberSessions(f"{group_type}-session", timers, self._expire_session)
        registry.add_kind(group_type, of, self)

    @abstractmethod
    def new_group(self, group_id: str) -> GroupT:
        """Return a group to decide on before it has records."""

    def find(self, group_id: str) -> GroupT | None:
        """Return the group; None if there is none, or it is of another type. HOT."""
        group = self._stored.get(group_id)
        return group if isinstance(group, self._of) else None

    def require(self, group_id: str) -> GroupT:
        """Return the group. KafkaError: GROUP_ID_NOT_FOUND."""
        group = self.find(group_id)
        if group is None:
            raise self.not_found(group_id)
        return group

    def not_found(self, group_id: str) -> KafkaError:
        """Return the error for an id without a group of this type."""
        is_other = self.registry.find(group_id) is not None
        reason = f"Group {group_id} is not a {self._group_type} group." if is_other else f"Group {group_id} not found."
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, reason)

    def each(self) -> Iterator[GroupT]:
        """Iterate over all groups of this type."""
        for group_id in list(self._by_id):
            group = self.find(group_id)
            if group is not None:
                yield group

    def restore(self, group_id: str, value: object) -> Group:  # noqa: ARG002  the group knows its id
        """Return ``value``, as a group is its own stored form."""
        return cast("Group", value)

    def view(self, group_id: str, value: object) -> Group:
        """Return ``value``."""
        return self.restore(group_id, value)

    def note_alive(self, group: Group, member_id: str) -> None:
        """No-op: only heartbeats keep a member's session alive."""

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Return the hash of those of the named topics that exist."""
        return self._hashes.of(names)

    def note_topics(self, changed: Iterable[str]) -> None:
        """Note created, deleted or changed topics. Groups that depend on them read their metadata again."""
        names = list(changed)
        self._hashes.forget(names)
        for group in self.each():
            if any(group.depends_on(name) for name in names):
                group.fresh_epoch = None

    def find_or_create(self, group_id: str) -> GroupT:
        """Return the group that a replayed record belongs to."""
        group = self.find(group_id)
        if group is None:
            group = self._by_id[group_id] = self.new_group(group_id)
            # This replaces a simple group that offsets created.
            self._stored[group_id] = group
            self.registry.live.pop(group_id, None)
        return group

    # -------------------------------------------------------------------------------------------------------- removal

    def begin_sessions(self) -> None:
        """Begin every member's session after a load, and the time limit of members with something to give up."""
        for group in self.each():
            timeout_ms = self.config_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                self.sessions.touch(group.group_id, member.member_id, timeout_ms)
                self.begin_revocation(group.group_id, member)

    def _expire_session(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        result = self.remove_member(group_id, member_id, "was silent for its session timeout")
        self.sessions_expired += bool(result.records)
        return result

    def begin_revocation(self, group_id: str, member: ModernMember) -> None:
        """Start the time limit of a member that must give something up."""
        limit_ms = member.revocation_timeout_ms
        if limit_ms is not None:
            expire = partial(self._expire_revocation, group_id, member.member_id, member.member_epoch)
            self.timers.schedule((f"{self._group_type}-revocation", group_id, member.member_id), limit_ms, expire)

    def _expire_revocation(self, group_id: str, member_id: str, epoch: int) -> CoordinatorResult[None]:
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if member is None or member.revocation_timeout_ms is None:
            return NOTHING_DECIDED
        if member.member_epoch != epoch:
            # The decision that began this time limit was rolled back, and had ended the time limit of the present epoch. A static
            # member that has left meanwhile (epoch -2) may be away until its session ends.
            if member.member_epoch >= 0:
                self.begin_revocation(group_id, member)
            return NOTHING_DECIDED
        return self.remove_member(group_id, member_id, f"did not give up {self.holdings} in time")

    def remove_member(self, group_id: str, member_id: str, why: str) -> CoordinatorResult[None]:
        """Decide to remove a member, unless it is gone."""
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        return NOTHING_DECIDED if group is None or member is None else self._remove(group, member, why)

    # --------------------------------------------------------------------------------------------------------- replay

    def replay(self, key: Any, value: Any) -> None:  # noqa: ANN401  the types of this kind's records
        """Apply a record. A tombstone of a missing object is ignored."""
        if value is not None:
            self.replay_value(self.find_or_create(key.group), key, value)
            return
        group = self.find(key.group)
        if group is not None:
            self._replay_tombstone(group, key)

    def replay_value(self, group: GroupT, key: Any, value: Any) -> None:  # noqa: ANN401
        """Apply a record to its group."""
        keys, kind = self._keys, type(key)
        if kind is keys.assignment:
            group.replay_member(group.member_or_new(key.member_id).with_assignment(value))
        elif kind is keys.member:
            group.replay_member(group.member_or_new(key.member_id).with_metadata(value))
        elif kind is keys.target:
            group.replay_target(key.member_id, group.target_of_record(value))
        elif kind is keys.target_epoch:
            group.replay_target_epoch(value)
        elif kind is keys.epoch:
            group.replay_epoch(value)
        else:
            group.replay_other(key, value)

    def _replay_tombstone(self, group: GroupT, key: Any) -> None:  # noqa: ANN401
        keys, kind = self._keys, type(key)
        if kind is keys.assignment:
            member = group.members.get(key.member_id)
            if member is not None:
                group.replay_member(member.without_assignment())
        elif kind is keys.member:
            group.replay_removed(key.member_id)
        elif kind is keys.target:
            group.replay_target(key.member_id, None)
        elif kind is keys.target_epoch:
            group.replay_target_epoch(None)
        elif kind is keys.epoch:
            self._stored.pop(key.group)
        else:
            group.replay_other(key, None)
