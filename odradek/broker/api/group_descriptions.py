"""Describes consumer, share and streams groups: the APIs differ in their messages, and in the topics that a group names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS, with_group_operations
from odradek.broker.large import FEW, Pieces, Repeated, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from odradek.broker.api.services import GroupProtocolServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.timing.reply import Reply

PIECES = Pieces(("group_ids",), ("groups",), FEW, Repeated.ALIKE)


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One of these APIs.

    Args:
        is_served: returns whether the kind of group is on. Otherwise each group is UNSUPPORTED_VERSION.
        response: the class of the response.
        group: the class of a described group.
        describe: describes a group, given its shard, its id and an offset of the log.
        topics: returns the topics that a described group names.
        fields: returns fields of a described group that depend on the request.
    """

    is_served: Callable[[Any], bool]
    response: type[Any]
    group: type[Any]
    describe: Callable[[GroupShard, str, int], Any]
    topics: Callable[[Any], Iterable[str]]
    fields: Callable[[Any], dict[str, object]] = lambda _: {}

    def handle(self, services: GroupProtocolServices, context: RequestContext, request: Any) -> Answer[Any]:  # noqa: ANN401  either API's
        """Ask each group's shard, in slices."""
        if not self.is_served(services):
            off = ErrorCode.UNSUPPORTED_VERSION
            return self.response(groups=[self.group(error_code=off, group_id=group_id) for group_id in request.group_ids])
        return answer_in_slices(services, context, self._describe_all(services, request))

    def _describe_all(self, services: GroupProtocolServices, request: Any) -> Generator[Reply[Any] | None, Any, Any]:  # noqa: ANN401
        operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
        fields = {**self.fields(request), "authorized_operations": operations}
        groups = yield from each_once(request.group_ids, lambda group_id: self._describe(services, group_id, fields))
        return self.response(groups=groups)

    def _describe(
        self, services: GroupProtocolServices, group_id: str, fields: dict[str, object]
    ) -> Generator[Reply[Any] | None, Any, Any]:
        if not group_id:
            return self.group(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            group = yield from services.groups.runtime.read(
                group_id, lambda shard, offset: self.describe(shard, group_id, offset)
            )
        except KafkaError as error:
            return self.group(group_id=group_id, error_code=error.code, error_message=error.reason or None)
        return group._replace(**fields)

    def rule(self, guarded: GuardedRequest) -> object:
        """Require DESCRIBE on each group, and on each topic that it names."""
        if not self.is_served(guarded.services):
            return guarded.handle()

        def convert(response: Any) -> Any:  # noqa: ANN401  either API's
            return self._without_hidden_topics(guarded, with_group_operations(guarded, response))

        return authorize_each(
            guarded, AclOperation.DESCRIBE, AclResourceType.GROUP, field="group_ids", answered="groups", convert=convert
        )

    def _without_hidden_topics(self, guarded: GuardedRequest, response: Any) -> Any:  # noqa: ANN401  either API's
        named = {group.group_id: set(self.topics(group)) for group in response.groups}
        seen = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, set().union(*named.values()))
        groups = [
            group
            if named[group.group_id] <= seen
            else self.group(
                group_id=group.group_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has topics that the client may not describe.",
            )
            for group in response.groups
        ]
        return response._replace(groups=groups)
