"""DeleteGroups, versions 0 to 2: groups without members go, and their offsets with them (KIP-229).

NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND are each group's own. A group that is named twice is deleted once.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.result import CoordinatorResult

M = messages(ApiKey.DELETE_GROUPS)


def handle(broker: "Broker", _context: "RequestContext", request: Any) -> Any:
    """Ask each group's shard; answer when all have."""
    reply: Reply[Any] = Reply()
    results: dict[str, Any] = dict.fromkeys(request.groups_names)
    missing = len(results)

    def finish(group_id: str, outcome: Any) -> None:
        nonlocal missing
        failed = isinstance(outcome, KafkaError)
        results[group_id] = M.DeletableGroupResult(group_id=group_id, error_code=outcome.code) if failed else outcome
        missing -= 1
        if not missing:
            reply.complete(M.DeleteGroupsResponse(results=list(results.values())))

    if not results:
        return M.DeleteGroupsResponse()
    for group_id in list(results):
        broker.groups.runtime.write(group_id, partial(_delete, group_id)).when_done(partial(finish, group_id))
    return reply


def _delete(group_id: str, shard: "GroupShard") -> "CoordinatorResult[Any]":
    return shard.delete_group(group_id)
