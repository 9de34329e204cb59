"""The parts of the broker that the coordinators use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.broker.replica.partitions import Partitions
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.timing.timer import DelayedOperation, Purgatory, Timer


class CoordinatorTopic(NamedTuple):
    """The settings in which the coordinators differ.

    ``modules`` are the coordinator's packages, in parts that take 10 to 20 ms each to import: clients are served in between.
    ``compression`` is the protocol's number of the compression type of its batches. ``write_timeout_ms`` is how long a client
    waits for replicas. If ``needs_enough_replicas``, an append is refused with fewer than ``min.insync.replicas`` in sync, as
    with acks=all.
    """

    coordinator: str
    topic: str
    modules: tuple[str, ...]
    load_buffer_bytes: int
    write_timeout_ms: int
    compression: int = 0
    needs_enough_replicas: bool = False


class CoordinatorServices:
    """The parts of the broker that the coordinators use.

    ``call_soon`` is the event loop's. ``call_at_turn_end`` also sends all answers of its callback together. ``on_bulk_load`` is
    called after every few thousand records that are loaded from a coordinator's topic. ``run_beside`` runs work in a thread, with
    a function that the work must call often, and calls back on the loop with the result, or with a KafkaError.
    """

    __slots__ = (
        "call_at_turn_end",
        "call_soon",
        "config",
        "controller",
        "on_bulk_load",
        "partitions",
        "produce_purgatory",
        "random",
        "run_beside",
        "timer",
    )

    def __init__(
        self,
        *,
        config: BrokerConfig,
        partitions: Partitions,
        produce_purgatory: Purgatory[DelayedOperation],
        controller: ClusterMetadata,
        timer: Timer,
        random: Random,
        call_soon: Callable[[Callable[[], None]], object],
        call_at_turn_end: Callable[[Callable[[], None]], None],
        on_bulk_load: Callable[[], object],
        run_beside: Callable[[Callable[[Callable[[], None]], Any], Callable[[Any], None]], None],
    ) -> None:
        self.config = config
        self.partitions = partitions
        self.produce_purgatory = produce_purgatory
        self.controller = controller
        self.timer = timer
        self.random = random
        self.call_soon = call_soon
        self.call_at_turn_end = call_at_turn_end
        self.on_bulk_load = on_bulk_load
        self.run_beside = run_beside
