"""FindCoordinator, versions 0 to 6: which broker coordinates a group (key type 0) or a transactional id (1, since version 1).

One broker coordinates everything; the topic behind a coordinator is created when first asked for, and where it cannot be, the
answer is COORDINATOR_NOT_AVAILABLE. From version 4 on many keys are asked at once (KIP-699), and errors carry no message.

Deliberate gap: share groups (key type 2, since version 6, KIP-932) are not there, and their keys answered with INVALID_REQUEST,
as by a Kafka without that coordinator. So is every other key type.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import NodeServices


# Named tuples are made without their constructors, in a third of the time: all fields are given, in their order.
_new: Final = tuple.__new__
_TOPICS = {0: CONSUMER_OFFSETS_TOPIC, 1: TRANSACTION_STATE_TOPIC}


def handle(services: "NodeServices", context: "RequestContext", request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Answer each key of ``request``."""
    error = _ensure_topic(services, request.key_type) if request.coordinator_keys else ErrorCode.NONE
    if error == ErrorCode.NONE:
        node_id = services.node_id
        host, port = services.advertised(context.listener_name)
    else:
        node_id, host, port = -1, "", -1
    message = "" if context.version >= 4 else error.name
    return FindCoordinatorResponse(
        coordinators=[_new(Coordinator, (key, node_id, host, port, error, message)) for key in request.coordinator_keys]
    )


def _ensure_topic(services: "NodeServices", key_type: int) -> ErrorCode:
    topic = _TOPICS.get(key_type)
    if topic is None:
        return ErrorCode.INVALID_REQUEST
    reply = services.controller.ensure_internal_topic(topic)
    # While the topic is being created, clients ask again.
    is_there = reply.done and not isinstance(reply.response, KafkaError)
    return ErrorCode.NONE if is_there else ErrorCode.COORDINATOR_NOT_AVAILABLE
