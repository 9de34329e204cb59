"""DeleteGroups, versions 0 to 3: deletes groups without members, and their offsets (KIP-229).

NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND are errors of one group. A group that is named twice is deleted once.

The share coordinators drop the states of a share group first (KIP-932). So a group is deleted after everything its shard has
written is committed, whatever its type, as in Kafka. If replicas do not respond, the answer COORDINATOR_NOT_AVAILABLE means that
the group still exists. Version 3 has an error message of each group. As in Kafka, it is null for these errors.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.coordination.share_group_states import delete_states
from odradek.broker.large import FEW, Pieces, Repeated
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupDeletionServices
    from odradek.common.context import RequestContext
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.group.group_shard import GroupShard

pieces = Pieces(("groups_names",), ("results",), FEW, Repeated.ONCE)


def handle(
    services: "GroupDeletionServices", _context: "RequestContext", request: DeleteGroupsRequest
) -> "DeleteGroupsResponse | Reply[DeleteGroupsResponse]":
    """Ask each group's shard. The Reply completes when all have answered."""
    runtime = services.groups.runtime
    reply: Reply[DeleteGroupsResponse] = Reply()
    group_ids = list(dict.fromkeys(request.groups_names))
    results: dict[str, DeletableGroupResult] = {}

    def finish(group_id: str, outcome: DeletableGroupResult | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            outcome = DeletableGroupResult(group_id=group_id, error_code=outcome.code)
        results[group_id] = outcome
        if len(results) == len(group_ids):
            reply.complete(DeleteGroupsResponse(results=[results[each] for each in group_ids]))

    def delete(group_id: str, error: KafkaError | None) -> None:
        if error is not None:
            finish(group_id, error)
        else:
            runtime.write(group_id, partial(_delete, group_id)).when_done(partial(finish, group_id))

    def begin(group_id: str, outcome: "Partitions | KafkaError") -> None:
        if isinstance(outcome, KafkaError):
            finish(group_id, outcome)
        elif not outcome:
            delete(group_id, None)
        else:
            work = delete_states(services.share_persister, group_id, outcome)
            services.slices.run(work).when_done(partial(delete, group_id))

    if not group_ids:
        return DeleteGroupsResponse()
    for group_id in group_ids:
        runtime.write(group_id, partial(_begin, group_id)).when_done(partial(begin, group_id))
    return reply


def _begin(group_id: str, shard: "GroupShard") -> "CoordinatorResult[Partitions]":
    return shard.begin_share_deletion(group_id)


def _delete(group_id: str, shard: "GroupShard") -> CoordinatorResult[DeletableGroupResult]:
    return shard.delete_group(group_id)


def rule(guarded: "GuardedRequest") -> object:
    """Require DELETE on each group."""
    guarded = guarded._replace(request=guarded.request._replace(groups_names=list(dict.fromkeys(guarded.request.groups_names))))
    return authorize_each(guarded, AclOperation.DELETE, AclResourceType.GROUP, field="groups_names", answered="results")
