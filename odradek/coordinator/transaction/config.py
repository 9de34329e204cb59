"""The configs of transactions, and the ports through which the coordinator writes markers and log lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from odradek.coordinator.runtime.record import EndTxnMarker
    from odradek.protocol.errors import KafkaError
    from odradek.timing.reply import Reply

# The timeout value for transactions that an external manager ends (KIP-939): they have no timeout.
NO_TIMEOUT_MS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """The configs of transactions, under Kafka's names and with its defaults; none of them changes while a broker runs."""

    transactional_id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch. Both are -1 if there is none."""

    producer_id: int
    producer_epoch: int


class MarkerWriter(Protocol):
    """Ends a producer's transaction on one partition."""

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """Append the marker. Return a Reply if it must still be replicated, or written by another broker.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION if the partition is deleted, INVALID_PRODUCER_EPOCH or
        TRANSACTION_COORDINATOR_FENCED if a newer epoch has written there, any other error if the write may be retried.
        """


class TransactionReports(Protocol):
    """The broker's log, for the coordinator's lines."""

    def info(self, event: str, **fields: object) -> None:
        """Log an event that may interest an operator."""

    def warn(self, event: str, **fields: object) -> None:
        """Log a refusal or a failure that an operator should know."""
