"""What partitions ask the transaction coordinator about a producer's writes (KIP-890)."""

from typing import Protocol

from odradek.protocol.errors import ErrorCode
from odradek.timing.reply import Reply


class Verifier(Protocol):
    """The transaction coordinator, as far as it is asked here."""

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[tuple[str, int]]
    ) -> dict[tuple[str, int], ErrorCode]:
        """NONE for those that are in the producer's open transaction."""

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[tuple[str, int]],
        client_version: int,
    ) -> Reply:
        """Completed with NONE when all of them are in it."""
