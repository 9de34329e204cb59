"""Whether a refusal is one that may be: who is fenced was superseded, who sends in order is taken in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.transactions.producer import Process
    from tests.campaigns.simulation.transactions.world import World

_FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
# Between the question to the coordinator and its answer they end what was asked about.
_UNVERIFYING = frozenset({"delete a topic", "repeat an old marker"})


def check_refusal(world: World, process: Process, api_key: ApiKey, code: int) -> None:
    """A process is refused for good: somebody newer has to be there. Raises Violation."""
    world.counts[f"ended by {ErrorCode(code).name}"] += 1
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        raise Violation("the broker makes no mistake", f"{api_key.name} of {process} is answered {ErrorCode(code).name}")
    producer_id, epoch = process.identity
    # A batch that comes again after its transaction is asked about as if it began one, and others wait for it, as in Kafka.
    is_plain = not world.plan.repeat_share and "delete a topic" not in world.plan.faults
    if is_plain and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        raise Violation("who sends in order is taken in order", f"{api_key.name} of {process}")
    if api_key is ApiKey.PRODUCE and code == ErrorCode.INVALID_TXN_STATE and world.plan.faults.keys() & _UNVERIFYING:
        # What was verified before these says nothing of what is there now.
        return
    if code in _FENCED and not world.witness.fates.is_superseded(process.plan.transactional_id, producer_id, epoch):
        latest = world.witness.fates.latest.get(process.plan.transactional_id)
        raise Violation("who is fenced was superseded", f"{api_key.name} of {process}: {ErrorCode(code).name}, at {latest}")
