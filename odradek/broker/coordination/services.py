"""The parts of the broker that the coordinators use."""

from __future__ import annotations

# The types of a compiled dataclass's fields are imported at run time.
from collections.abc import Callable  # noqa: TC003
from dataclasses import dataclass
from random import Random  # noqa: TC003
from typing import Any, NamedTuple

from odradek.broker.replica.partitions import Partitions  # noqa: TC001
from odradek.common.config.broker_config import BrokerConfig  # noqa: TC001
from odradek.controller.metadata.cluster_metadata import ClusterMetadata  # noqa: TC001
from odradek.timing.timer import DelayedOperation, Purgatory, Timer  # noqa: TC001


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorServices:
    """The parts of the broker that the coordinators use.

    ``call_soon`` is the event loop's. ``call_at_turn_end`` also sends all answers of its callback together. ``on_bulk_load`` is
    called after every few thousand records that are loaded from a coordinator's topic. ``run_beside`` runs work in a thread, with
    a function that the work must call often, and calls back on the loop with the result, or with a KafkaError.
    """

    config: BrokerConfig
    partitions: Partitions
    produce_purgatory: Purgatory[DelayedOperation]
    controller: ClusterMetadata
    timer: Timer
    random: Random
    call_soon: Callable[[Callable[[], None]], object]
    call_at_turn_end: Callable[[Callable[[], None]], None]
    on_bulk_load: Callable[[], object]
    run_beside: Callable[[Callable[[Callable[[], None]], Any], Callable[[Any], None]], None]
