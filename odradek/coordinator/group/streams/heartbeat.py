"""StreamsGroupHeartbeat: a member joins, reports its tasks, and gets its tasks.

    1. the member is added or updated; the first one brings the topology
    2. the topology is configured again, if its topics have changed
    3. a change that concerns the assignment raises the group's epoch
    4. the target assignment is computed, if it is older than the group's epoch
    5. the member comes nearer to its target

The answer has the tasks if the member joins, or if they have changed. In contrast to Kafka, it also has them if the member seems
to have missed an answer: it sends its former epoch, or reports other tasks than it has. Without that, it would never learn of
tasks in a lost answer. The answer has the endpoints of all members if the member does not know the newest.

The caller creates the internal topics that are missing. A later heartbeat finds them.

A member that joins with another topology of the same epoch is refused. With an older one it stays, and is told so.

Source: ``GroupMetadataManager.streamsGroupHeartbeat`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.coordinator.group.assignor.streams_interface import MemberTasks
from odradek.coordinator.group.streams.configured_topology import Status
from odradek.coordinator.group.streams.endpoints import endpoints
from odradek.coordinator.group.streams.group import NO_OFFSETS, TaskOffsets
from odradek.coordinator.group.streams.internal_topics import configure_topics
from odradek.coordinator.group.streams.leave import HeartbeatOutcome, leave_group, note_shutdown
from odradek.coordinator.group.streams.member import (
    AssignmentBasis,
    assignment_record,
    epoch_record,
    member_record,
    topology_record,
)
from odradek.coordinator.group.streams.reconciliation import Reconciliation, reconcile
from odradek.coordinator.group.streams.target import Basis, Target, begin_initial_delay, update_target
from odradek.coordinator.group.streams.topology import topology_of
from odradek.coordinator.group.streams.validation import check_request, check_tasks, group_of, known_member
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records.streams_groups import Endpoint
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import streams_group_heartbeat as messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.streams.configured_topology import ConfiguredTopology
    from odradek.coordinator.group.streams.group import StreamsGroup
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.group.streams.member import StreamsGroupMember
    from odradek.coordinator.group.streams.topology import StreamsTopology
    from odradek.coordinator.runtime.result import CoordinatorRecord

# The first version whose clients know MISSING_CLIENT_TAGS.
_FIRST_VERSION_WITH_TAGS = 1


def heartbeat(
    groups: StreamsGroups, context: MemberContext, request: messages.StreamsGroupHeartbeatRequest
) -> CoordinatorResult[HeartbeatOutcome]:
    """Decide on a StreamsGroupHeartbeat. Raises KafkaError for every refusal. HOT."""
    check_request(request)
    if request.member_epoch < 0:
        return leave_group(groups, request)
    records: list[CoordinatorRecord] = []
    group = group_of(groups, request, records)
    beat = _Heartbeat(groups, group, context, request, records)
    outcome = beat.decide()
    groups.heartbeats += 1
    config = groups.config_of(request.group_id)
    groups.sessions.touch(request.group_id, request.member_id, config.session_timeout_ms)
    return CoordinatorResult(records, outcome)


class _Heartbeat:
    """One heartbeat of a known or new member, which was ``_old`` before it. Records to write are added to ``_records``."""

    __slots__ = ("_config", "_context", "_group", "_groups", "_old", "_records", "_request", "_statuses")

    def __init__(
        self,
        groups: StreamsGroups,
        group: StreamsGroup,
        context: MemberContext,
        request: messages.StreamsGroupHeartbeatRequest,
        records: list[CoordinatorRecord],
    ) -> None:
        self._groups = groups
        self._group = group
        self._context = context
        self._request = request
        self._records = records
        self._config = groups.config_of(request.group_id)
        self._old = known_member(groups, group, request, records)
        self._statuses: list[messages.Status] = []

    def decide(self) -> HeartbeatOutcome:
        """Return the outcome."""
        group, groups = self._group, self._groups
        member = _updated(self._old, self._context, self._request)
        must_raise = self._note_member(member)
        topology = self._topology()
        known = group.topology.get()
        if known is not None and member.topology_epoch < known.epoch:
            self._tell(
                Status.STALE_TOPOLOGY,
                f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {known.epoch}.",
            )
        metadata_hash, configured = self._configured(topology)
        must_raise = must_raise or metadata_hash != group.metadata_hash.get()
        if configured.is_ready:
            check_tasks(configured, self._request)
        self._note_offsets()
        epoch = self._epoch(metadata_hash, configured, must_raise=must_raise)
        if not group.members:
            begin_initial_delay(groups, group.group_id)
        basis = Basis(epoch, configured, self._config.assignment_configs())
        target = update_target(groups, group, basis, member, self._records)
        if target.delay is not None:
            self._tell(Status.ASSIGNMENT_DELAYED, target.delay)
        member = self._reconciled(member, target)
        if self._request.shutdown_application:
            note_shutdown(groups, group, member.member_id)
        return HeartbeatOutcome(self._response(member, configured), configured.missing)

    def _tell(self, status: Status, detail: str) -> None:
        self._statuses.append(messages.Status(status_code=status, status_detail=detail))

    def _note_member(self, member: StreamsGroupMember) -> bool:
        """Write the member if it is new or changed. Return whether the assignment may depend on the change."""
        old = self._old
        if member == old:
            return False
        self._records.append(member_record(self._group.group_id, member))
        if self._request.instance_id is None:
            return True
        return _relevant(member) != _relevant(old)

    def _topology(self) -> StreamsTopology:
        """Return the group's topology, which is the request's if the group has none. KafkaError: INVALID_REQUEST."""
        known, given = self._group.topology.get(), self._request.topology
        if given is None:
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"group {self._group.group_id} has no topology")
            return known
        topology = topology_of(given)
        if known is None:
            self._records.append(topology_record(self._group.group_id, topology.value))
            return topology
        if known.epoch <= topology.epoch and not known.is_same(topology):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return known

    def _configured(self, topology: StreamsTopology) -> tuple[int, ConfiguredTopology]:
        """Return the hash of the topics' metadata, and the topology configured with it."""
        group, groups = self._group, self._groups
        configured = group.configured
        is_new = group.topology.get() is None
        # The group's hash may be rolled back, and the configured topology is not.
        if configured is not None and not is_new and not group.is_stale:
            return configured.metadata_hash, configured
        metadata_hash = groups.metadata_hash(topology.required_topics)
        if configured is None or is_new or metadata_hash != configured.metadata_hash:
            configured = configure_topics(topology, metadata_hash, groups.partition_count)
            group.configured = configured
        return metadata_hash, configured

    def _note_offsets(self) -> None:
        request, group = self._request, self._group
        if request.task_offsets is None and request.task_end_offsets is None:
            return
        offsets, ends = group.task_offsets.get(request.member_id, NO_OFFSETS)
        if request.task_offsets is not None:
            offsets = _offsets(request.task_offsets)
        if request.task_end_offsets is not None:
            ends = _offsets(request.task_end_offsets)
        group.task_offsets[request.member_id] = TaskOffsets(offsets, ends)

    def _epoch(self, metadata_hash: int, configured: ConfiguredTopology, *, must_raise: bool) -> int:
        """Return the group's epoch, raised if the assignment depends on something that has changed."""
        group = self._group
        before = group.basis.get()
        validated = configured.epoch if configured.is_ready else -1
        basis = AssignmentBasis(validated, self._config.assignment_configs(), before.described)
        epoch = group.epoch.get()
        if must_raise or basis != before:
            epoch += 1
            self._records.append(epoch_record(group.group_id, epoch, metadata_hash, basis))
            self._groups.epochs_raised += 1
        group.fresh_epoch = epoch
        return epoch

    def _reconciled(self, member: StreamsGroupMember, target: Target) -> StreamsGroupMember:
        group = self._group
        if member.is_reconciled_to(target.epoch):
            return member
        given = Reconciliation(
            target_epoch=target.epoch,
            target=target.tasks,
            active_process=group.active_process,
            standby_processes=group.standby_processes,
            warmup_processes=group.warmup_processes,
            owned=_owned(self._request),
        )
        after = reconcile(member, given)
        if after != member:
            self._records.append(assignment_record(group.group_id, after))
            self._groups.begin_revocation(group.group_id, after)
        return after

    def _response(self, member: StreamsGroupMember, configured: ConfiguredTopology) -> messages.StreamsGroupHeartbeatResponse:
        group, old, request = self._group, self._old, self._request
        is_joining = request.member_epoch == 0
        has_changed = member.assigned != old.assigned
        if member.user_endpoint != old.user_endpoint or (has_changed and member.user_endpoint is not None):
            group.endpoint_epoch += 1
        entries = None
        if group.endpoint_epoch != request.endpoint_information_epoch:
            replaced = group.static_members.get(request.instance_id or "")
            entries = endpoints(self._groups, group, configured.configured or {}, member, replaced)
        self._tell_problems(member, configured)
        assigned = member.assigned.without_epochs()
        has_missed = request.member_epoch < old.member_epoch or _owned(request) not in (None, assigned)
        tasks = assigned if is_joining or has_changed or has_missed else None
        return messages.StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._config.heartbeat_interval_ms,
            task_offset_interval_ms=self._config.task_offset_interval_ms,
            acceptable_recovery_lag=self._config.acceptable_recovery_lag,
            status=self._statuses,
            active_tasks=None if tasks is None else _answered(tasks.active),
            standby_tasks=None if tasks is None else _answered(tasks.standby),
            warmup_tasks=None if tasks is None else _answered(tasks.warmup),
            # A group that is not stored yet forgets its epoch.
            endpoint_information_epoch=0 if self._groups.find(group.group_id) is None else group.endpoint_epoch,
            partitions_by_user_endpoint=entries,
        )

    def _tell_problems(self, member: StreamsGroupMember, configured: ConfiguredTopology) -> None:
        if configured.problem is not None:
            self._tell(*configured.problem)
        if self._group.shutdown_member_id is not None:
            self._tell(
                Status.SHUTDOWN_APPLICATION,
                f"Streams group member {self._group.shutdown_member_id} encountered a fatal error and requested a shutdown for "
                "the entire application.",
            )
        if self._context.version >= _FIRST_VERSION_WITH_TAGS:
            own = {key for key, _ in member.client_tags}
            missing = [tag for tag in self._config.rack_aware_assignment_tags if tag not in own]
            if missing:
                self._tell(
                    Status.MISSING_CLIENT_TAGS,
                    f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them via "
                    "'client.tag.<tagKey>' in your Streams config.",
                )


def _updated(
    old: StreamsGroupMember, context: MemberContext, request: messages.StreamsGroupHeartbeatRequest
) -> StreamsGroupMember:
    """Return the member updated from the request. A joining member also gives its endpoint up. HOT."""
    timeout_ms = request.rebalance_timeout_ms
    # Most heartbeats say nothing of the member.
    given = (request.instance_id, request.rack_id, request.process_id, request.client_tags, request.user_endpoint)
    is_same_client = old.client_id == context.client_id and old.client_host == context.client_host
    if request.member_epoch != 0 and timeout_ms == -1 and is_same_client and given == (old.instance_id, None, None, None, None):
        return old
    endpoint = None if request.user_endpoint is None else Endpoint(*request.user_endpoint)
    if endpoint is None and request.member_epoch != 0:
        endpoint = old.user_endpoint
    tags = request.client_tags
    return replace(
        old,
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=old.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=context.client_id,
        client_host=context.client_host,
        process_id=old.process_id if request.process_id is None else request.process_id,
        client_tags=old.client_tags if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        user_endpoint=endpoint,
    )


def _relevant(member: StreamsGroupMember) -> tuple[object, ...]:
    """Return the part of a static member that the assignment depends on."""
    return member.topology_epoch, member.rack_id, member.client_tags, member.process_id


def _owned(request: messages.StreamsGroupHeartbeatRequest) -> MemberTasks | None:
    """Return the tasks that the member reports owning; None if it does not say."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    active, standby, warmup = (
        {each.subtopology_id: frozenset(each.partitions) for each in tasks if each.partitions}
        for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    )
    return MemberTasks(active, standby, warmup)


def _offsets(reported: Iterable[messages.TaskOffset]) -> dict[str, dict[int, int]]:
    """Return offsets by subtopology and partition. KafkaError: INVALID_REQUEST for a task that is named twice."""
    found: dict[str, dict[int, int]] = {}
    for subtopology_id, partition, offset in reported:
        own = found.setdefault(subtopology_id, {})
        if partition in own:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {subtopology_id} and partition {partition}.",
            )
        own[partition] = offset
    return found


def _answered(tasks: Mapping[str, AbstractSet[int]]) -> list[messages.TaskIds]:
    return [
        messages.TaskIds(subtopology_id=subtopology_id, partitions=sorted(partitions))
        for subtopology_id, partitions in tasks.items()
    ]
