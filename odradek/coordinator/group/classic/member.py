"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from odradek.protocol.message_types.describe_groups import DescribedGroupMember

if TYPE_CHECKING:
    from odradek.protocol.errors import KafkaError
    from odradek.protocol.message_types.join_group import JoinGroupResponse
    from odradek.protocol.message_types.sync_group import SyncGroupResponse
    from odradek.timing.reply import Reply

# (name, metadata) in the member's order of preference.
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]

# The replies of the JoinGroups and SyncGroups that a group holds.
JoinReply: TypeAlias = "Reply[JoinGroupResponse | KafkaError]"
SyncReply: TypeAlias = "Reply[SyncGroupResponse | KafkaError]"


@dataclass(slots=True, eq=False)
class Member:
    """A member as the coordinator knows it. A member with a ``group_instance_id`` is static (KIP-345).

    ``waiting_join`` and ``waiting_sync`` are the replies of its held JoinGroup and SyncGroup. ``is_new`` holds from its first
    join to the end of that rebalance: until then it may not know its id, and so cannot heartbeat. ``is_nameless``: it came
    without a member id, and learns its id from the answer to that first join. ``session_deadline_ms`` and ``timer_deadline_ms``
    (both monotonic) belong to ``groups.Sessions``.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    is_nameless: bool = False
    waiting_join: JoinReply | None = None
    waiting_sync: SyncReply | None = None
    session_deadline_ms: float = inf
    timer_deadline_ms: float = inf

    @property
    def is_static(self) -> bool:
        """Return whether the member keeps its place when it comes back under another member id."""
        return self.group_instance_id is not None

    @property
    def may_be_silent(self) -> bool:
        """Return whether an expired session is ignored: the member waits for an answer, and knows its member id."""
        return not self.is_new and (self.waiting_join is not None or self.waiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for ``protocol``. Raises KeyError if the member does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(f"member {self.member_id} does not support {protocol!r}")

    def describe(self, protocol: str | None) -> DescribedGroupMember:
        """Return the member for DescribeGroups, without metadata if ``protocol`` is None."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )

    def vote(self, candidates: set[str]) -> str:
        """Return the member's first choice among ``candidates``, of which it supports at least one."""
        return next(name for name, _ in self.protocols if name in candidates)
