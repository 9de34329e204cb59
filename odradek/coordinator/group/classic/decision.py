"""The decision of one operation on a classic group: records, responses, and the hooks that keep the live state right.

Responses are in their newest version; handlers translate them for older ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.message_types.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.message_types.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.runtime.result import CoordinatorRecord, DeferredResponse
    from odradek.protocol.errors import ErrorCode, KafkaError
    from odradek.timing.reply import Reply

T = TypeVar("T")


class Decision:
    """Collects the parts of a ``CoordinatorResult``.

    A response may free a connection, whose next request is decided immediately, possibly for the same group. So the runtime gives
    all responses together, after the last change to the group. If the append fails, or the shard is unloaded before the commit,
    all of them fail, as they rest on lost records. Kafka sends most of them before it appends. Failure hooks leave the group
    ready to be joined again.
    """

    __slots__ = ("_commit_hooks", "_failure_hooks", "_responses", "records")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._responses: list[tuple[Reply[Any], Any]] = []
        self._commit_hooks: list[Callable[[], None]] = []
        self._failure_hooks: list[Callable[[KafkaError], None]] = []

    def answer(self, reply: Reply[T | KafkaError] | None, response: T) -> None:
        """Give ``reply`` its response when the records are committed. Does nothing if ``reply`` is None."""
        if reply is not None:
            self._responses.append((reply, response))

    def on_commit(self, hook: Callable[[], None]) -> None:
        """Call ``hook`` when the records are committed; it may answer through this decision."""
        self._commit_hooks.append(hook)

    def on_failure(self, hook: Callable[[KafkaError], None]) -> None:
        """Call ``hook`` when the append fails or the shard is unloaded; it may answer through this decision."""
        self._failure_hooks.append(hook)

    def result(self, response: T | DeferredResponse) -> CoordinatorResult[T]:
        """Return the decision as a result for the runtime."""
        if not self._commit_hooks and not self._failure_hooks:
            return CoordinatorResult(self.records, response, responses=self._responses)
        return CoordinatorResult(self.records, response, on_failure=self._fail, on_commit=self._commit, responses=self._responses)

    def _commit(self) -> None:
        for hook in self._commit_hooks:
            hook()
        self._forget_hooks()

    def _fail(self, error: KafkaError) -> None:
        for hook in self._failure_hooks:
            hook(error)
        self._forget_hooks()

    def _forget_hooks(self) -> None:
        # The hooks refer to this decision. Clear them so that no reference cycle is left to the garbage collector.
        self._commit_hooks.clear()
        self._failure_hooks.clear()


def join_error(error_code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return the response to a JoinGroup that is refused, or that the client must repeat."""
    return JoinGroupResponse(error_code=error_code, member_id=member_id)


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Return the response to a granted JoinGroup: the generation, and for the leader the metadata of all members."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    if group.leader == member_id:
        members = tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def joined_in_place_of(group: ClassicGroup, member_id: str, leader: str) -> JoinGroupResponse:
    """Return the response to a static member's JoinGroup before version 9, granted without a rebalance.

    ``leader`` is the previous leader's id. A member that led under its former id does not recognize itself in it, and so does not
    compute an assignment in vain. KIP-814 uses ``skip_assignment`` instead.
    """
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader,
        member_id=member_id,
    )


def sync_error(error_code: ErrorCode) -> SyncGroupResponse:
    """Return the response to a SyncGroup that is refused."""
    return SyncGroupResponse(error_code=error_code)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """Return the response to a granted SyncGroup: the member's assignment."""
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
