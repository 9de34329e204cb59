"""Orders are placed by customers."""

import json
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer


class Shop:
    """Takes orders, and returns when Kafka has them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, enable_idempotence=True)

    async def place(self, customer: str, total: int) -> int:
        """Place an order; its offset. All orders of a customer are in one partition."""
        placed = await self._producer.send_and_wait("placed", json.dumps({"total": total}).encode(), key=customer.encode())
        return placed.offset

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._producer.stop()
