"""Rules for groups' offsets: OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit."""

from typing import Any, Final

from odradek.broker.authorization.asked import Asked, then, with_refused
from odradek.broker.authorization.refusals import offset_commit_topics, refused, txn_offset_commit_topics
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import offset_commit as commits
from odradek.protocol.message_types import offset_delete as deletions
from odradek.protocol.message_types import offset_fetch as fetches
from odradek.protocol.message_types import txn_offset_commit as in_transactions

_TOPIC: Final = AclResourceType.TOPIC
_GROUP: Final = AclResourceType.GROUP
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_FIRST_BY_ID: Final = 10
_FIRST_WITH_GROUP_ERROR: Final = 2
_NO_OFFSET: Final = -1


def offset_commit(asked: Asked) -> Any:
    """READ on the group and on each topic."""
    request = asked.request
    if not asked.access.allows(AclOperation.READ, _GROUP, request.group_id):
        return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    by_id = asked.context.version >= _FIRST_BY_ID
    permitted, others = asked.split(AclOperation.READ, _TOPIC, request.topics, lambda topic: _name(asked, topic, by_id=by_id))
    told = offset_commit_topics(others, _REFUSED)
    if told and not permitted:
        return commits.OffsetCommitResponse(topics=told)
    return with_refused(asked.handle(request._replace(topics=permitted) if told else None), "topics", told)


def txn_offset_commit(asked: Asked) -> Any:
    """WRITE on the transactional id, READ on the group and on each topic."""
    request = asked.request
    if not asked.access.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return refused(asked, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not asked.access.allows(AclOperation.READ, _GROUP, request.group_id):
        return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    permitted, others = asked.split(AclOperation.READ, _TOPIC, request.topics, lambda topic: topic.name)
    told = txn_offset_commit_topics(others, _REFUSED)
    if told and not permitted:
        return in_transactions.TxnOffsetCommitResponse(topics=told)
    return with_refused(asked.handle(request._replace(topics=permitted) if told else None), "topics", told)


def offset_delete(asked: Asked) -> Any:
    """DELETE on the group, READ on each topic."""
    request = asked.request
    if not asked.access.allows(AclOperation.DELETE, _GROUP, request.group_id):
        return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    permitted, others = asked.split(AclOperation.READ, _TOPIC, request.topics, lambda topic: topic.name)
    told = [
        deletions.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[deletions.OffsetDeleteResponsePartition(each.partition_index, _REFUSED) for each in topic.partitions],
        )
        for topic in others
    ]
    return with_refused(asked.handle(request._replace(topics=permitted) if told else None), "topics", told)


def offset_fetch(asked: Asked) -> Any:
    """DESCRIBE on each group and on each topic. Topics that the client may not know are left out where it asks for all."""
    request = asked.request
    plans = [_plan(asked, group) for group in request.groups]
    if all(plan.is_untouched for plan in plans):
        return asked.handle()
    permitted = [plan.group for plan in plans if plan.group is not None]

    def joined(response: fetches.OffsetFetchResponse) -> fetches.OffsetFetchResponse:
        answers = iter(response.groups)
        return response._replace(groups=[plan.answer(asked, answers) for plan in plans])

    if not permitted:
        return joined(fetches.OffsetFetchResponse())
    return then(asked.handle(request._replace(groups=permitted)), joined)


class _Plan:
    """What becomes of one group of an OffsetFetch: ``group`` is what the handler is asked, None where it is not."""

    def __init__(self, group: Any, told: Any = (), refusal: Any = None, *, is_untouched: bool = False) -> None:
        self.group = group
        self.told = list(told)
        self._refusal = refusal
        self.is_untouched = is_untouched

    def answer(self, asked: Asked, answers: Any) -> Any:
        """The group's part of the response, from those of the handler in their order."""
        if self.group is None:
            return self._refusal
        answer = next(answers)
        if answer.error_code:
            return answer
        topics = answer.topics
        if self.group.topics is None:
            seen = asked.access.allowed(AclOperation.DESCRIBE, _TOPIC, [topic.name for topic in topics])
            topics = [topic for topic in topics if topic.name in seen]
        return answer._replace(topics=[*topics, *self.told])


def _plan(asked: Asked, group: Any) -> _Plan:
    version = asked.context.version
    if not asked.access.allows(AclOperation.DESCRIBE, _GROUP, group.group_id):
        return _Plan(None, refusal=_group_refusal(group, version))
    if group.topics is None:
        return _Plan(group)
    by_id = version >= _FIRST_BY_ID
    permitted, others = asked.split(AclOperation.DESCRIBE, _TOPIC, group.topics, lambda topic: _name(asked, topic, by_id=by_id))
    if not others:
        return _Plan(group, is_untouched=True)
    return _Plan(group._replace(topics=permitted), [_topic_refusal(topic, _REFUSED) for topic in others])


def _group_refusal(group: Any, version: int) -> fetches.OffsetFetchResponseGroup:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if version >= _FIRST_WITH_GROUP_ERROR:
        return fetches.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    topics = [_topic_refusal(topic, code) for topic in group.topics or ()]
    return fetches.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _topic_refusal(topic: Any, code: ErrorCode) -> fetches.OffsetFetchResponseTopics:
    partitions = [
        fetches.OffsetFetchResponsePartitions(partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=code)
        for index in topic.partition_indexes
    ]
    return fetches.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _name(asked: Asked, topic: Any, *, by_id: bool) -> str | None:
    """The name of a topic that is asked for by its name or its id; None for an id that is not known."""
    if not by_id:
        return str(topic.name)
    found = None if topic.topic_id is None else asked.services.controller.image.topics_by_id.get(topic.topic_id)
    return None if found is None else found.name
