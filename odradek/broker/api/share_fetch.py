"""ShareFetch, versions 1 and 2: a member of a share group acquires records, and acknowledges earlier ones (KIP-932).

Acknowledgements on a fetch are those of ShareAcknowledge; they are handled first. Since version 2 a member may renew locks, in a
request that fetches nothing (KIP-1222), and choose the acquire mode (KIP-1206). A session begins at epoch 0, without
acknowledgements, and ends at epoch -1, without a fetch. With ``group.share.max.share.sessions`` sessions, a new one is refused at
the end of the max wait, so that its client does not come back at once.

Left out: throttled fetches without records. A member over its fetch quota gets a throttle time beside its records, since they
are acquired (``quotas.throttle_gate``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.api.share_requests import WITH_RENEWAL, NamedPartitions, acknowledge, batches_of, named, refusal
from odradek.broker.replica.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from odradek.broker.share.acquisition import ACQUIRE_MODES, RECORD_LIMIT
from odradek.broker.share.delayed_share_fetch import ShareFetchParams, failed
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_fetch import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from odradek.broker.api.services import ShareServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.broker.share.delayed_share_fetch import Results
    from odradek.broker.share.share_partition_manager import Outcomes
    from odradek.broker.share.share_sessions import ShareSession, TopicIdPartition
    from odradek.common.context import RequestContext


class _Context(NamedTuple):
    """The partitions of a fetch, and the session if it existed before. Kafka's name is ShareFetchContext.

    ``ending`` is the session that ends with this fetch, which has no other.
    """

    partitions: Sequence[TopicIdPartition]
    session: ShareSession | None = None
    ending: ShareSession | None = None


def handle(
    services: ShareServices, context: RequestContext, request: ShareFetchRequest, guarded: GuardedRequest | None = None
) -> ShareFetchResponse | Reply[ShareFetchResponse]:
    """Acknowledge and fetch. The session's errors and those of ``refusal`` fail the request, others a partition."""
    code = refusal(services, request, guarded)
    is_renewal = context.version >= WITH_RENEWAL and request.is_renew_ack
    if code is None and is_renewal and any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)):
        code = ErrorCode.INVALID_REQUEST
    if code is not None:
        return ShareFetchResponse(error_code=code)
    batches = batches_of(request)
    acknowledges = any(batches.values())
    try:
        opened = _open(services, context, request, list(batches), acknowledges)
    except KafkaError as error:
        refused = ShareFetchResponse(error_code=error.code)
        if error.code != ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return refused
        late: Reply[ShareFetchResponse] = Reply()
        services.timer.call_after(request.max_wait_ms, lambda: late.complete(refused))
        return late
    known = NamedPartitions(services, guarded, {*opened.partitions, *batches})
    answer = _Answer(services, request, opened)
    if acknowledges:
        may_renew = context.version >= WITH_RENEWAL
        acknowledge(services, request, batches, known, may_renew=may_renew).when_done(answer.acknowledged)
    else:
        answer.acknowledged({})
    if is_renewal:
        answer.fetched({})
    else:
        _fetch(services, context, request, opened, known, answer)
    return answer.reply


def _open(
    services: ShareServices,
    context: RequestContext,
    request: ShareFetchRequest,
    wanted: list[TopicIdPartition],
    acknowledges: bool,
) -> _Context:
    """Return the partitions to fetch, by the request and its session. KafkaError: the session's, INVALID_REQUEST."""
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    sessions = services.share_partitions.sessions
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a first fetch has nothing to acknowledge")
        connection = None if context.session.connection is None else context.session
        sessions.begin(group_id, member_id, wanted, connection)
        return _Context(wanted)
    session = sessions.advance(group_id, member_id, epoch)
    if epoch == FINAL_EPOCH:
        return _Context([], ending=session)
    forgotten = [named(topic.topic_id, each) for topic in request.forgotten_topics_data for each in topic.partitions]
    session.update(wanted, forgotten)
    partitions = list(session.partitions)
    # Each fetch begins with another partition.
    turn = epoch % len(partitions) if partitions else 0
    return _Context(partitions[turn:] + partitions[:turn], session)


def _fetch(
    services: ShareServices,
    context: RequestContext,
    request: ShareFetchRequest,
    opened: _Context,
    known: NamedPartitions,
    answer: _Answer,
) -> None:
    errors: Results = {}
    readable = []
    for name in opened.partitions:
        code = known.error_of(name)
        if code is None:
            readable.append(name)
        else:
            errors[name] = failed(name.partition, KafkaError(code))
    if not readable:
        answer.fetched(errors)
        return
    if request.share_acquire_mode not in ACQUIRE_MODES:
        answer.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    max_bytes = min(request.max_bytes, services.config["fetch.max.bytes"])
    quota = services.quotas.fetch_quota(context)
    if quota is not None:
        max_bytes = quota.most_bytes(max_bytes)
    params = ShareFetchParams(
        member_id=request.member_id or "",
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_records=request.max_records,
        batch_size=request.batch_size,
        has_record_limit=request.share_acquire_mode == RECORD_LIMIT,
        is_committed_only=services.share_partitions.configs.is_committed_only(request.group_id or ""),
    )
    fetched = services.share_partitions.fetch(request.group_id or "", params, readable, request.max_wait_ms)
    fetched.when_done(lambda results: answer.fetched(results | errors))


class _Answer:
    """The response, which is complete when the acknowledgements are stored and the fetch is over."""

    __slots__ = ("_opened", "_outcomes", "_request", "_results", "_services", "reply")

    def __init__(self, services: ShareServices, request: ShareFetchRequest, opened: _Context) -> None:
        self.reply: Reply[ShareFetchResponse] = Reply()
        self._services = services
        self._request = request
        self._opened = opened
        self._outcomes: Outcomes | None = None
        self._results: Results | None = None

    def acknowledged(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._respond()

    def fetched(self, results: Results) -> None:
        self._results = results
        self._respond()

    def fail(self, code: ErrorCode) -> None:
        """Answer with an error at once. The acknowledgements count."""
        self.reply.complete(ShareFetchResponse(error_code=code))

    def _respond(self) -> None:
        if self._outcomes is None or self._results is None:
            return
        request, shares = self._request, self._services.share_partitions
        lock_ms = shares.configs.limits(request.group_id or "").record_lock_duration_ms
        response = self._response(self._results, self._outcomes, lock_ms)
        if self._opened.ending is not None:
            shares.release_session(self._opened.ending)
        self.reply.complete(response)

    def _response(self, results: Results, outcomes: Outcomes, lock_ms: int) -> ShareFetchResponse:
        session = self._opened.session
        code = ErrorCode.NONE
        if session is not None:
            if session.epoch == next_epoch(self._request.share_session_epoch):
                results = {name: data for name, data in results.items() if session.is_told(name, data)}
            else:
                # Another request of the session came meanwhile: this one is a duplicate.
                results, code = {}, ErrorCode.INVALID_SHARE_SESSION_EPOCH
        for name, error in outcomes.items():
            data = results.get(name) or PartitionData(partition_index=name.partition, records=b"")
            if error is not None:
                data = data._replace(acknowledge_error_code=error.code, acknowledge_error_message=error.reason or None)
            results[name] = data
        topics: dict[UUID, list[PartitionData]] = {}
        for name, data in results.items():
            topics.setdefault(name.topic_id, []).append(data)
        responses = [ShareFetchableTopicResponse(topic_id, partitions) for topic_id, partitions in topics.items()]
        return ShareFetchResponse(error_code=code, acquisition_lock_timeout_ms=lock_ms, responses=responses)


def rule(guarded: GuardedRequest) -> object:
    """Require READ on the group, and on each topic of the session."""
    return handle(guarded.services, guarded.context, guarded.request, guarded)
