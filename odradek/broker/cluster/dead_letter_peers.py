"""Dead letters of share groups to the leaders of dead-letter topics on other brokers (KIP-1191)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.client.api import ClientError
from odradek.client.apis import PRODUCE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.produce_request import ProduceRequest
from odradek.timing.driver import OwnTasks
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.cluster.broker_clients import BrokerClients
    from odradek.client.node_client import NodeClient

_ALL_IN_SYNC: Final = -1
_TIMEOUT_MS: Final = 30_000


class DeadLetterPeers:
    """The OtherLeaders of the dead-letter queue. Loop thread only."""

    def __init__(self, clients: BrokerClients[NodeClient]) -> None:
        self._clients = clients
        self._tasks = OwnTasks()

    def produce(self, node_id: int, topic: str, partition: int, batch: bytes) -> Reply[KafkaError | None]:
        """Have a broker append a batch, with acks=all. KafkaError: NETWORK_EXCEPTION, and the leader's."""
        reply: Reply[KafkaError | None] = Reply()
        self._tasks.start(self._produce(node_id, topic, partition, batch, reply))
        return reply

    async def _produce(self, node_id: int, topic: str, partition: int, batch: bytes, reply: Reply[KafkaError | None]) -> None:
        client = self._clients.client_of(node_id)
        if client is None:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {node_id} is not alive"))
            return
        request = ProduceRequest(acks=_ALL_IN_SYNC, timeout_ms=_TIMEOUT_MS, topics=[(topic, [(partition, batch)])])
        try:
            response = await client.request(PRODUCE, request)
        except ClientError as error:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, error.reason))
            return
        (answered,) = response.responses[0].partition_responses
        code = ErrorCode(answered.error_code)
        reply.complete(KafkaError(code, answered.error_message or "") if code else None)

    def close(self) -> None:
        """Wait for no answer any more."""
        self._tasks.cancel()
