"""InitProducerId, versions 0 to 5: a producer id for a producer that is idempotent (KIP-98).

Without a transactional id every request gets a new id, at epoch 0, whatever id it says it has (KIP-360 makes the client start
over with it). Ids come from blocks that are written to the metadata log before the first of them is used, so none is ever
given twice; what is left of a block when the broker stops is lost.

Deliberate gap: transactions. A transactional id is checked as far as the request goes, and answered with
COORDINATOR_NOT_AVAILABLE, on which a client looks for its coordinator again.
"""

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.INIT_PRODUCER_ID)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Give a producer id, or say why not."""
    error = _error(broker, request)
    if error != ErrorCode.NONE:
        return _refusal(error)
    try:
        producer_id = broker.controller.next_producer_id()
    except KafkaError as failure:
        return _refusal(failure.code)
    return M.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _error(broker: "Broker", request: Any) -> ErrorCode:
    # An id without an epoch, or the reverse, says nothing.
    if (request.producer_id == -1) != (request.producer_epoch == -1) or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not 0 < request.transaction_timeout_ms <= broker.config["transaction.max.timeout.ms"]:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _refusal(error: ErrorCode) -> Any:
    return M.InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
