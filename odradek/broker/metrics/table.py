"""The table of all metrics, and the reading of all values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.broker import BROKER_SECTION, PURGATORY_SECTION
from odradek.broker.metrics.groups import GROUP_SECTION, OFFSET_SECTION, SHARD_SECTION
from odradek.broker.metrics.partitions import CLEANER_SECTION, PARTITION_SECTION, REPLICATION_SECTION, TOPIC_SECTION
from odradek.broker.metrics.quotas import QUOTA_SECTION
from odradek.broker.metrics.requests import AUTHENTICATION_SECTION, CONNECTION_SECTION, REQUEST_SECTION
from odradek.broker.metrics.telemetry import TELEMETRY_SECTION
from odradek.broker.metrics.transactions import TRANSACTION_SECTION, TRANSACTION_SHARD_SECTION

if TYPE_CHECKING:
    from odradek.broker.metrics.definitions import MeteredBroker, Reading

SECTIONS = (
    REQUEST_SECTION,
    CONNECTION_SECTION,
    AUTHENTICATION_SECTION,
    QUOTA_SECTION,
    TOPIC_SECTION,
    PARTITION_SECTION,
    REPLICATION_SECTION,
    CLEANER_SECTION,
    GROUP_SECTION,
    OFFSET_SECTION,
    SHARD_SECTION,
    TRANSACTION_SECTION,
    TRANSACTION_SHARD_SECTION,
    PURGATORY_SECTION,
    TELEMETRY_SECTION,
    BROKER_SECTION,
)


def read_all(broker: MeteredBroker) -> list[Reading]:
    """Return the current values of all metrics. Loop thread only; the result may be passed to another thread."""
    return [reading for section in SECTIONS for reading in section.read(broker)]
