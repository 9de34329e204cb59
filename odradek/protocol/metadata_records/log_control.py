"""Metadata records of the metadata log itself: idle records, transactions of records. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class NoOpRecord(NamedTuple):
    """No change: a Kafka controller appends one from time to time, so that the log's high watermark moves."""


class ZkMigrationStateRecord(NamedTuple):
    """The progress of a migration from ZooKeeper (KIP-866)."""

    zk_migration_state: int = 0


class BeginTransactionRecord(NamedTuple):
    """The records up to an EndTransactionRecord take effect together, or not at all (KIP-868)."""

    name: str | None = None


class EndTransactionRecord(NamedTuple):
    """The records of the open metadata transaction take effect."""


class AbortTransactionRecord(NamedTuple):
    """The records of the open metadata transaction never take effect."""

    reason: str | None = None


CLASSES: Final[dict[str, type[Any]]] = {
    "NoOpRecord": NoOpRecord,
    "ZkMigrationStateRecord": ZkMigrationStateRecord,
    "BeginTransactionRecord": BeginTransactionRecord,
    "EndTransactionRecord": EndTransactionRecord,
    "AbortTransactionRecord": AbortTransactionRecord,
}
FIELDS: Final[dict[int, str]] = {
    20: """
NoOpRecord 0 flexible 0+
""",
    21: """
ZkMigrationStateRecord 0 flexible 0+
 zk_migration_state int8
""",
    23: """
BeginTransactionRecord 0 flexible 0+
 name string null tag 0 = null
""",
    24: """
EndTransactionRecord 0 flexible 0+
""",
    25: """
AbortTransactionRecord 0 flexible 0+
 reason string null tag 0 = null
""",
}
