"""DeleteGroups, versions 0 to 2: groups without members go, and their offsets with them (KIP-229).

NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND are each group's own. A group that is named twice is deleted once.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import GroupServices
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.result import CoordinatorResult


def handle(
    services: "GroupServices", _context: "RequestContext", request: DeleteGroupsRequest
) -> "DeleteGroupsResponse | Reply[DeleteGroupsResponse]":
    """Ask each group's shard; answer when all have."""
    reply: Reply[DeleteGroupsResponse] = Reply()
    group_ids = list(dict.fromkeys(request.groups_names))
    results: dict[str, DeletableGroupResult] = {}

    def finish(group_id: str, outcome: DeletableGroupResult | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            outcome = DeletableGroupResult(group_id=group_id, error_code=outcome.code)
        results[group_id] = outcome
        if len(results) == len(group_ids):
            reply.complete(DeleteGroupsResponse(results=[results[each] for each in group_ids]))

    if not group_ids:
        return DeleteGroupsResponse()
    for group_id in group_ids:
        services.groups.runtime.write(group_id, partial(_delete, group_id)).when_done(partial(finish, group_id))
    return reply


def _delete(group_id: str, shard: "GroupShard") -> "CoordinatorResult[DeletableGroupResult]":
    return shard.delete_group(group_id)
