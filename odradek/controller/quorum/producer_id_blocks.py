"""Blocks of producer ids from the controller (AllocateProducerIds, KIP-730), for ``metadata.producer_ids``."""

import asyncio
from collections.abc import Callable
from typing import Final

from odradek.client.api import Api, ClientError
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import ControllerUnavailable
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.timing.reply import Reply

_ALLOCATE: Final[Api[AllocateProducerIdsRequest, AllocateProducerIdsResponse]] = Api(ApiKey.ALLOCATE_PRODUCER_IDS)
_TIMEOUT_MS: Final = 60_000


class ProducerIdBlocks:
    """Requests blocks of producer ids for the broker, as registered at that time. Loop thread only."""

    def __init__(self, controller: Controller, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._under_way: set[asyncio.Task[None]] = set()

    def request(self) -> Reply[range | KafkaError]:
        """Return a new block, or KafkaError(COORDINATOR_LOAD_IN_PROGRESS) if the controller gives none.

        On that code, clients retry.
        """
        reply: Reply[range | KafkaError] = Reply()
        task = asyncio.get_running_loop().create_task(self._request(reply))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return reply

    def close(self) -> None:
        """Stop asking."""
        for task in self._under_way:
            task.cancel()

    async def _request(self, reply: Reply[range | KafkaError]) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            response = await self._controller.request(_ALLOCATE, request, _TIMEOUT_MS)
        except (ControllerUnavailable, ClientError) as error:
            reply.complete(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no block of producer ids: {error}"))
            return
        if response.error_code:
            reason = f"the controller refused a block of producer ids: error {response.error_code}"
            reply.complete(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason))
            return
        start = response.producer_id_start
        reply.complete(range(start, start + response.producer_id_len))
