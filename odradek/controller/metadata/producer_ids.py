"""Producer ids from blocks that the controller hands out (Kafka: ProducerIdManager)."""

from collections.abc import Callable, Iterator

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply


class ProducerIdManager:
    """Gives each producer id once. ``request_block`` asks the controller for the next block."""

    def __init__(self, request_block: Callable[[], Reply[range | KafkaError]]) -> None:
        self._request_block = request_block
        self._block: Iterator[int] = iter(range(0))
        self._requested: Reply[range | KafkaError] | None = None

    def prepare(self) -> None:
        """Ask for the first block, so that the first producer need not ask twice."""
        self._requested = self._requested or self._request_block()

    def next_producer_id(self) -> int:
        """Return a producer id never given out before.

        KafkaError: COORDINATOR_LOAD_IN_PROGRESS while the next block is on its way, or the controller's error.
        """
        producer_id = next(self._block, None)
        if producer_id is not None:
            return producer_id
        requested = self._requested or self._request_block()
        if not requested.done:
            self._requested = requested
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "waiting for the next block of producer ids")
        self._requested = None
        block = requested.response
        if isinstance(block, KafkaError):
            raise block
        self._block = iter(block)
        return next(self._block)
