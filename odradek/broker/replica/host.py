"""What group commit, moves and the opening of the storage see of the broker that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.metadata.controller import Controller
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.replica.delayed_produce import DelayedProduce
    from odradek.broker.replica.housekeeping import Housekeeping
    from odradek.broker.replica.partitions import Partitions
    from odradek.storage.data_directory import DataDirectory
    from odradek.storage.log_manager import LogManager
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.purgatory import Purgatory
    from odradek.timing.timer import Timer


class Moves(Protocol):
    """The moves of partitions to other directories, as far as directories that go are concerned."""

    def cancel(self, key: tuple[str, int]) -> None:
        """Give up the move of a partition, if there is one."""

    def directory_failed(self, directory: DataDirectory) -> None:
        """Give up what was to move there, or was there."""


class ReplicaHost(Protocol):
    """The broker. What ``open`` makes (the log manager, the controller, housekeeping) is there from then on."""

    config: BrokerConfig
    node_id: int
    clock: Clock
    timer: Timer
    background: Background
    partitions: Partitions
    fetch_purgatory: Purgatory[DelayedFetch]
    produce_purgatory: Purgatory[DelayedProduce]
    log_manager: LogManager
    controller: Controller
    housekeeping: Housekeeping

    @property
    def moves(self) -> Moves:
        """Of partitions to other directories."""

    def fail(self, reason: str) -> None:
        """There is nothing to serve from any more."""
