"""FindCoordinator, versions 0 to 6: the coordinator of a group (key type 0), transactional id (1) or share partition (2).

The coordinator is the leader of the key's partition. The internal topic is created when first needed. COORDINATOR_NOT_AVAILABLE
if it cannot be created, and while that leader cannot be reached. From version 4 on a request has many keys (KIP-699), and errors
have no message.

Brokers ask for share partitions, since version 6 (KIP-932). The key is ``group:topic id:partition``. INVALID_REQUEST for another
form of it, and for all other key types.

Deliberate gap: none.
"""

import re
from typing import TYPE_CHECKING, Final

from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import GuardedRequest, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.texts import parse_uuid

if TYPE_CHECKING:
    from odradek.broker.api.services import NodeServices
    from odradek.common.context import RequestContext


# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_WITHOUT_MESSAGES: Final = 4
_SHARE_KEY: Final = 2
_FIRST_WITH_SHARES: Final = 6
_COORDINATED: Final = {
    0: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
_TOPICS = {0: CONSUMER_OFFSETS_TOPIC, 1: TRANSACTION_STATE_TOPIC, _SHARE_KEY: SHARE_GROUP_STATE_TOPIC}
_PARTITION: Final = re.compile(r"[+-]?[0-9]+")
_MAX_INT32: Final = 0x7FFFFFFF

pieces = Pieces(("coordinator_keys",), ("coordinators",))


def handle(services: "NodeServices", context: "RequestContext", request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Answer each key of ``request``."""
    has_messages = context.version < _WITHOUT_MESSAGES
    hashed = {key: _hashed(request.key_type, key) for key in request.coordinator_keys}
    error = ErrorCode.NONE
    if any(text is not None for text in hashed.values()):
        error = _ensure_topic(services, request.key_type, context.version)
    if error != ErrorCode.NONE:
        coordinators = [_failed(key, error, has_message=has_messages) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    find = services.cluster.coordinator
    # A request without keys may have an unknown key type.
    topic, listener_name = _TOPICS.get(request.key_type, ""), context.listener_name
    message = error.name if has_messages else ""
    coordinators = []
    for key in request.coordinator_keys:
        text = hashed[key]
        if text is None:
            coordinators.append(_failed(key, ErrorCode.INVALID_REQUEST, has_message=has_messages))
        elif (node := find(topic, text, listener_name)) is None:
            coordinators.append(_failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, has_message=has_messages))
        else:
            coordinators.append(_new(Coordinator, (key, node.node_id, node.host, node.port, error, message)))
    return FindCoordinatorResponse(coordinators=coordinators)


def _hashed(key_type: int, key: str) -> str | None:
    """Return the text whose hash finds the coordinator; None for a key that is no share partition's."""
    if key_type != _SHARE_KEY:
        return key
    group_id, _, rest = key.partition(":")
    topic_id, _, partition = rest.partition(":")
    if not group_id.strip() or not _PARTITION.fullmatch(partition) or abs(int(partition)) > _MAX_INT32:
        return None
    try:
        return SharePartitionKey(group_id.strip(), parse_uuid(topic_id), int(partition)).coordinator_key
    except ValueError:
        return None


def _failed(key: str, error: ErrorCode, *, has_message: bool) -> Coordinator:
    return _new(Coordinator, (key, -1, "", -1, error, error.name if has_message else ""))


def _ensure_topic(services: "NodeServices", key_type: int, version: int) -> ErrorCode:
    topic = _TOPICS.get(key_type)
    if topic is None or (key_type == _SHARE_KEY and version < _FIRST_WITH_SHARES):
        return ErrorCode.INVALID_REQUEST
    reply = services.controller.ensure_internal_topic(topic)
    # While the topic is being created, clients retry.
    is_there = reply.done and not isinstance(reply.response, KafkaError)
    return ErrorCode.NONE if is_there else ErrorCode.COORDINATOR_NOT_AVAILABLE


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each group or transactional id, and CLUSTER_ACTION for share group keys."""
    request = guarded.request
    has_messages = guarded.context.version < _WITHOUT_MESSAGES
    if request.key_type == _SHARE_KEY and not guarded.access.allows_cluster(AclOperation.CLUSTER_ACTION):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return FindCoordinatorResponse(
            coordinators=[_failed(key, code, has_message=has_messages) for key in request.coordinator_keys]
        )
    if request.key_type not in _COORDINATED:
        return guarded.handle()
    resource_type, code = _COORDINATED[request.key_type]
    permitted, others = guarded.split(AclOperation.DESCRIBE, resource_type, request.coordinator_keys, str)
    told = [_failed(key, code, has_message=has_messages) for key in others]
    if told and not permitted:
        return FindCoordinatorResponse(coordinators=told)
    return with_refused(guarded.handle(request._replace(coordinator_keys=permitted) if told else None), "coordinators", told)
