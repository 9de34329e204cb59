"""OffsetFetch, versions 1 to 10: groups' committed offsets.

One group before version 8, many since then (KIP-709). Since version 2 null means all topics of a group. Leader epochs from
version 5 on (KIP-320), topic ids from 10 on (KIP-848). With ``require_stable`` (KIP-447, from version 7 on) the read includes
offsets that are decided but not yet committed, and waits until they are committed. Offsets that a transaction is about to commit
are UNSTABLE_OFFSET_COMMIT. Without it, committed offsets are read at once.

Errors are the group's. Version 1 has them only in the partitions. Unlike Kafka, versions up to 7 get them there too: aiokafka
looks nowhere else, and takes a group that is loading for one without offsets.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.broker.large import Pieces, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, then
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.offset_fetch import LATEST, NO_OFFSET, fetch_all_offsets, fetch_offsets
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from odradek.broker.api.services import OffsetFetchServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext


_FIRST_VERSION_BY_ID: Final = 10
_FIRST_VERSION_WITH_GROUP_ERROR: Final = 2
_FIRST_VERSION_WITH_MANY_GROUPS: Final = 8

pieces = Pieces(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"))
has_unbounded_response = True


def handle(
    services: "OffsetFetchServices", context: "RequestContext", request: OffsetFetchRequest
) -> "Answer[OffsetFetchResponse] | Reply[OffsetFetchResponse]":
    """Answer each group: named topics of a single group at once, others in slices. With ``require_stable``, as a Reply."""
    if len(request.groups) != 1 or request.groups[0].topics is None:
        return answer_in_slices(services, context, _read_all(services, context.version, request))
    fetch = _GroupFetch(services, context.version, request.groups[0])
    if not request.require_stable:
        return OffsetFetchResponse(groups=[fetch.read()])
    return fetch.read_stable().then(lambda outcome: OffsetFetchResponse(groups=[fetch.told(outcome)]))


def _read_all(
    services: "OffsetFetchServices", version: int, request: OffsetFetchRequest
) -> "Generator[Reply[Any] | None, Any, OffsetFetchResponse]":
    stable = request.require_stable
    groups = yield from each_once(request.groups, lambda group: _read(services, version, group, require_stable=stable))
    return OffsetFetchResponse(groups=groups)


def _read(
    services: "OffsetFetchServices", version: int, group: OffsetFetchRequestGroup, *, require_stable: bool
) -> "Generator[Reply[Any] | None, Any, OffsetFetchResponseGroup]":
    fetch = _GroupFetch(services, version, group)
    if group.topics is None:
        return (yield from fetch.read_all(require_stable=require_stable))
    return fetch.told((yield fetch.read_stable())) if require_stable else fetch.read()


class _GroupFetch:
    """The fetch of one group. Resolves topic ids to names, and sets unknown topics aside."""

    def __init__(self, services: "OffsetFetchServices", version: int, group: OffsetFetchRequestGroup) -> None:
        self._services = services
        self._version = version
        self._by_id = version >= _FIRST_VERSION_BY_ID
        self._is_for_all = group.topics is None
        self._unknown: list[OffsetFetchResponseTopics] = []
        self._group = group
        if self._by_id and group.topics is not None:
            self._group = group._replace(topics=self._named(group.topics))

    def read(self) -> OffsetFetchResponseGroup:
        """Return the group's committed offsets."""
        group = self._group
        try:
            answer = self._services.groups.runtime.read(
                group.group_id, lambda shard, committed_offset: fetch_offsets(shard.offsets, group, committed_offset)
            )
        except KafkaError as error:
            return self._failed(error.code)
        return self._finished(answer)

    def read_stable(self) -> Reply[OffsetFetchResponseGroup | KafkaError]:
        """Return a Reply for ``told``, completed when all offsets in it are committed."""
        group = self._group
        return self._services.groups.runtime.write(
            group.group_id, lambda shard: CoordinatorResult((), fetch_offsets(shard.offsets, group, LATEST))
        )

    def told(self, outcome: OffsetFetchResponseGroup | KafkaError) -> OffsetFetchResponseGroup:
        """Return the group's response, given the outcome of ``read_stable``."""
        return self._failed(outcome.code) if isinstance(outcome, KafkaError) else self._finished(outcome)

    def read_all(self, *, require_stable: bool) -> "Generator[Reply[Any] | None, Any, OffsetFetchResponseGroup]":
        """Return all committed offsets of the group, in slices."""
        group = self._group
        runtime = self._services.groups.runtime
        try:
            if require_stable:
                outcome = yield runtime.write(
                    group.group_id, lambda shard: CoordinatorResult((), fetch_all_offsets(shard.offsets, group, LATEST))
                )
                if isinstance(outcome, KafkaError):
                    return self._failed(outcome.code)
            else:
                outcome = runtime.read(
                    group.group_id, lambda shard, committed_offset: fetch_all_offsets(shard.offsets, group, committed_offset)
                )
        except KafkaError as error:
            return self._failed(error.code)
        answer: OffsetFetchResponseGroup = yield from outcome
        return self._finished(answer)

    def _named(self, topics: "Iterable[OffsetFetchRequestTopics]") -> "list[OffsetFetchRequestTopics]":
        """Return the topics that exist, with their names."""
        known = self._services.controller.image.topics_by_id
        named = []
        for topic in topics:
            found = None if topic.topic_id is None else known.get(topic.topic_id)
            if found is None:
                self._unknown.append(_refusal(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                named.append(topic._replace(name=found.name))
        return named

    def _finished(self, answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        topics = answer.topics
        if self._by_id and self._is_for_all:
            # Topics that were deleted have no id to return, so they are left out.
            known = self._services.controller.image.topics
            topics = [topic._replace(topic_id=known[topic.name].topic_id) for topic in topics if topic.name in known]
        return answer if topics is answer.topics and not self._unknown else answer._replace(topics=[*topics, *self._unknown])

    def _failed(self, error_code: ErrorCode) -> OffsetFetchResponseGroup:
        # As in Kafka: the Java client gives up on COORDINATOR_NOT_AVAILABLE, but on NOT_COORDINATOR it finds the coordinator
        # again.
        code = ErrorCode.NOT_COORDINATOR if error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE else error_code
        group = self._group
        topics: list[OffsetFetchResponseTopics] = []
        if self._version < _FIRST_VERSION_WITH_MANY_GROUPS and group.topics is not None:
            topics = [_refusal(topic, code) for topic in group.topics]
        group_error = code if self._version >= _FIRST_VERSION_WITH_GROUP_ERROR else ErrorCode.NONE
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=group_error)


def _refusal(topic: OffsetFetchRequestTopics, error_code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error_code)
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each group and topic. If all topics are requested, hidden ones are left out."""
    request = guarded.request
    plans = [_plan(guarded, group) for group in request.groups]
    permitted = [plan.group for plan in plans if plan.refusal is None]

    def joined(response: OffsetFetchResponse) -> OffsetFetchResponse:
        answers = iter(response.groups)
        groups = [plan.refusal or plan.answer(guarded, next(answers)) for plan in plans]
        return response._replace(groups=groups)

    if not permitted:
        return joined(OffsetFetchResponse())
    if not any(plan.told or plan.refusal or plan.group.topics is None for plan in plans):
        return guarded.handle()
    return then(guarded.handle(request._replace(groups=permitted)), joined)


class _Plan(NamedTuple):
    """The plan for one group. The handler gets ``group`` unless the group is refused. ``told`` has the refused topics."""

    group: OffsetFetchRequestGroup
    told: list[OffsetFetchResponseTopics]
    refusal: OffsetFetchResponseGroup | None = None

    def answer(self, guarded: "GuardedRequest", answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        """Return the group's part of the response, given the handler's answer."""
        if answer.error_code:
            return answer
        topics = answer.topics
        if self.group.topics is None:
            seen = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, [topic.name for topic in topics])
            topics = [topic for topic in topics if topic.name in seen]
        return answer._replace(topics=[*topics, *self.told])


def _plan(guarded: "GuardedRequest", group: OffsetFetchRequestGroup) -> _Plan:
    version = guarded.context.version
    if not guarded.allows(AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id):
        return _Plan(group, [], _group_refusal(group, version))
    if group.topics is None:
        return _Plan(group, [])
    by_id = version >= _FIRST_VERSION_BY_ID
    permitted, others = guarded.split(
        AclOperation.DESCRIBE, AclResourceType.TOPIC, group.topics, lambda topic: guarded.topic_name(topic, by_id=by_id)
    )
    told = [_refusal(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in others]
    return _Plan(group._replace(topics=permitted) if told else group, told)


def _group_refusal(group: OffsetFetchRequestGroup, version: int) -> OffsetFetchResponseGroup:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if version >= _FIRST_VERSION_WITH_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    topics = [_refusal(topic, code) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)
