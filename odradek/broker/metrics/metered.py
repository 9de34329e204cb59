"""What the metrics see of a broker: plain numbers of its rooms, read on its loop thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.coordination.group_coordinator import GroupCoordinator
    from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
    from odradek.broker.logging import LineLimit
    from odradek.broker.metadata.cluster_metadata import ClusterMetadata
    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.quotas.quota_switch import QuotaSwitch
    from odradek.broker.replica.fetch_sessions import FetchSessions
    from odradek.broker.replica.log_cleaner import LogCleaner
    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.storage.log_manager import LogManager
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.driver import AsyncioDriver
    from odradek.timing.purgatory import Purgatory
    from odradek.timing.timer import Timer


class MeteredBroker(Protocol):
    """A broker that has been opened."""

    config: BrokerConfig
    node_id: int
    cluster_id: str
    clock: Clock
    background: Background
    timer: Timer
    line_limit: LineLimit
    controller: ClusterMetadata
    partitions: Partitions
    log_manager: LogManager
    log_cleaner: LogCleaner
    fetch_sessions: FetchSessions
    quotas: QuotaSwitch
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    dispatcher: Dispatcher
    # None where nobody listens for it.
    connections: ConnectionRegistry | None

    @property
    def telemetry_so_far(self) -> ClientMetricsManager | None:
        """What clients measure; None where none has asked what to measure."""

    @property
    def listener_names(self) -> list[str]:
        """The listeners by which clients come."""

    @property
    def purgatories(self) -> tuple[Purgatory[Any], ...]:
        """Where requests wait."""

    @property
    def timer_driver(self) -> AsyncioDriver | None:
        """What wakes the timer, where the clock passes by itself."""
