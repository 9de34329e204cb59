"""UnregisterBroker, version 0 (KIP-631): a broker that is gone for good is taken out of the cluster.

A broker among others has it answered by the controller. One that is its own controller knows no other broker, and stays.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicServices
    from odradek.common.context import RequestContext


def handle(services: "TopicServices", _context: "RequestContext", request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """BROKER_ID_NOT_REGISTERED for any other broker; INVALID_REQUEST for this one."""
    if request.broker_id == services.node_id:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message="a broker that is its own controller is not unregistered"
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=f"Broker ID {request.broker_id} is not currently registered"
    )


rule = on_cluster(AclOperation.ALTER)
