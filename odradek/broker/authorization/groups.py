"""Rules for groups: listing, describing and deleting them, and the heartbeats of consumer groups."""

from functools import partial
from typing import Any, Final

from odradek.broker.authorization.asked import Asked, only, then, with_refused
from odradek.broker.authorization.refusals import refused
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.handlers.topic_description import NO_OPERATIONS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import consumer_group_describe as consumer_groups
from odradek.protocol.message_types import delete_groups as deletions
from odradek.protocol.message_types import describe_groups as classic_groups
from odradek.protocol.message_types.list_groups import ListedGroup

_GROUP: Final = AclResourceType.GROUP
_TOPIC: Final = AclResourceType.TOPIC
_REFUSED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED


def list_groups(asked: Asked) -> Any:
    """All groups to who may DESCRIBE the cluster, to others those that they may DESCRIBE."""
    access = asked.access
    if access.allows_cluster(AclOperation.DESCRIBE, tells=False):
        return asked.handle()

    def may_see(group: ListedGroup) -> bool:
        return access.allows(AclOperation.DESCRIBE, _GROUP, group.group_id, tells=False)

    return only(asked, asked.handle(), "groups", may_see)


def describe_groups(asked: Asked) -> Any:
    """DESCRIBE on each group."""
    permitted, others = asked.split(AclOperation.DESCRIBE, _GROUP, asked.request.groups, str)
    told = [classic_groups.DescribedGroup(group_id=group_id, error_code=_REFUSED) for group_id in others]
    if told and not permitted:
        return classic_groups.DescribeGroupsResponse(groups=told)
    answer = then(asked.handle(asked.request._replace(groups=permitted)), partial(_with_operations, asked))
    return with_refused(answer, "groups", told)


def consumer_group_describe(asked: Asked) -> Any:
    """DESCRIBE on each group, and on each topic that its members have or are to have."""
    if not _is_served(asked):
        return asked.handle()
    permitted, others = asked.split(AclOperation.DESCRIBE, _GROUP, asked.request.group_ids, str)
    told = [consumer_groups.DescribedGroup(group_id=group_id, error_code=_REFUSED) for group_id in others]
    if told and not permitted:
        return consumer_groups.ConsumerGroupDescribeResponse(groups=told)
    answer = then(asked.handle(asked.request._replace(group_ids=permitted)), partial(_with_operations, asked))
    return with_refused(then(answer, partial(_without_hidden_topics, asked)), "groups", told)


def _with_operations(asked: Asked, response: Any) -> Any:
    """Without an authorizer the handler tells all operations."""
    groups = [
        group
        if group.authorized_operations == NO_OPERATIONS
        else group._replace(authorized_operations=asked.access.operations(_GROUP, group.group_id))
        for group in response.groups
    ]
    return response._replace(groups=groups)


def _without_hidden_topics(asked: Asked, response: Any) -> Any:
    named = {group.group_id: _topics(group) for group in response.groups}
    seen = asked.access.allowed(AclOperation.DESCRIBE, _TOPIC, set().union(*named.values()))
    groups = [
        group
        if named[group.group_id] <= seen
        else consumer_groups.DescribedGroup(
            group_id=group.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has topics that the client may not describe.",
        )
        for group in response.groups
    ]
    return response._replace(groups=groups)


def _topics(group: consumer_groups.DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def delete_groups(asked: Asked) -> Any:
    """DELETE on each group."""
    permitted, others = asked.split(AclOperation.DELETE, _GROUP, dict.fromkeys(asked.request.groups_names), str)
    told = [deletions.DeletableGroupResult(group_id=group_id, error_code=_REFUSED) for group_id in others]
    if told and not permitted:
        return deletions.DeleteGroupsResponse(results=told)
    return with_refused(asked.handle(asked.request._replace(groups_names=permitted)), "results", told)


def consumer_group_heartbeat(asked: Asked) -> Any:
    """READ on the group, DESCRIBE on each topic that is subscribed to by its name.

    A regular expression matches only topics that the client may DESCRIBE whose heartbeat has it resolved.
    """
    if not _is_served(asked):
        return asked.handle()
    request, access = asked.request, asked.access
    if not access.allows(AclOperation.READ, _GROUP, request.group_id):
        return refused(asked, _REFUSED)
    names = set(request.subscribed_topic_names or ())
    if names and len(access.allowed(AclOperation.DESCRIBE, _TOPIC, names)) < len(names):
        return refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return asked.handle(services=_MemberServices(asked))


def join_group(asked: Asked) -> Any:
    """READ on the group. A consumer group may resolve its regular expressions then, as with a heartbeat."""
    if not asked.access.allows(AclOperation.READ, _GROUP, asked.request.group_id):
        return refused(asked, _REFUSED)
    return asked.handle(services=_MemberServices(asked))


class _MemberServices:
    """The services of a member's request, which say what its client may see."""

    def __init__(self, asked: Asked) -> None:
        self._services = asked.services
        self._access = asked.access

    def __getattr__(self, name: str) -> Any:
        return getattr(self._services, name)

    def may_see(self, topic: str) -> bool:
        """Whether a regular expression of the client's may match this topic."""
        return self._access.allows(AclOperation.DESCRIBE, _TOPIC, topic, tells=False)


def _is_served(asked: Asked) -> bool:
    from odradek.broker.handlers.consumer_group_heartbeat import is_served

    return is_served(asked.services)
