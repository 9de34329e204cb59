"""The workloads of the crash points, run to their end: the points that a broker comes to that is not killed.

Whether the producer goes on or another instance takes over matters only after the kill, so scenarios that differ in nothing else
are one workload.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.transaction.states import TransactionState
from tests.campaigns.crash.points.broker import DEATH_TIMEOUT_S, DyingBroker
from tests.campaigns.crash.points.epochs import use_up_epochs
from tests.campaigns.crash.points.points import POINTS
from tests.campaigns.crash.points.producer import Producer, Refused
from tests.campaigns.crash.points.run import FATE, OFFSETS
from tests.campaigns.crash.points.scenario import (
    NEW_TRANSACTIONAL_ID,
    SETTINGS,
    SHORT_TIMEOUT_MS,
    TRANSACTIONAL_ID,
    Ending,
    Scenario,
    Transaction,
    steps_of,
)
from tests.campaigns.crash.points.seen import state_on_disk, wait_until_settled, wait_until_stable
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.campaigns.crash.points.places import Place
    from tests.campaigns.crash.points.points import CrashPoint
    from tests.campaigns.crash.points.producer import Kind


class Workload(NamedTuple):
    """What a broker goes through before the kill. ``death``: where it dies first, if the point is one of its next start."""

    kind: Kind
    ending: Ending
    is_new: bool
    is_exhausted: bool
    is_first: bool
    death: Place | None

    def __str__(self) -> str:
        marks = [name for name in ("is_new", "is_exhausted", "is_first") if getattr(self, name)]
        then = [f"restarted after death {self.death}"] if self.death else []
        return " ".join([self.ending.value, self.kind.name, *marks, *then])


def workload_of(point: CrashPoint, scenario: Scenario) -> Workload:
    """The workload of a point in a scenario."""
    death = point.places[0] if len(point.places) > 1 else None
    return Workload(scenario.kind, scenario.ending, point.is_new, point.is_exhausted, point.is_first, death)


def points_by_workload() -> dict[Workload, list[CrashPoint]]:
    """Every workload, and the points that are to be reached by it. Of points of a next start, one scenario stands for all."""
    found: dict[Workload, dict[str, CrashPoint]] = {}
    for point in POINTS:
        for scenario in point.scenarios[:1] if len(point.places) > 1 else point.scenarios:
            found.setdefault(workload_of(point, scenario), {})[point.name] = point
    return {workload: list(points.values()) for workload, points in found.items()}


def reached_by(workload: Workload, points: list[CrashPoint], templates: Mapping[Kind | None, Path], directory: Path) -> list[str]:
    """The names of the points that a broker comes to under ``workload``; after a restart, if ``points`` are of one."""
    broker = DyingBroker(directory / "data", settings=SETTINGS)
    shutil.copytree(templates[None if workload.is_first else workload.kind], broker.data_dir)
    if workload.is_exhausted:
        use_up_epochs(broker.data_dir, TRANSACTIONAL_ID, workload.kind)
    number = 0
    if workload.death is not None:
        broker.arm(points[0], 0)
        broker.start()
        with suppress(OSError):
            _transact(workload, broker)
        broker.ensure_killed(points[0], 0)
        number = 1
    broker.watch(number)
    with broker:
        if workload.death is None:
            _transact(workload, broker)
        if broker.running:
            _wait_until_ended(broker)
            # A graceful stop would come to more points.
            broker.kill9()
    suffix = f" {number}"
    return [place.removesuffix(suffix) for place in broker.reached if place.endswith(suffix)]


def _wait_until_ended(broker: DyingBroker) -> None:
    """Wait until the last transaction is complete, if its end is decided or near."""
    value = state_on_disk(broker.data_dir, TRANSACTIONAL_ID)
    if value is not None and value.status == TransactionState.ONGOING and value.timeout_ms > SHORT_TIMEOUT_MS:
        return
    with RawClient(broker.host, broker.port) as client:
        # A coordinator that is not loaded yet lists no transactions.
        wait_until_stable(client)
        wait_until_settled(client)


def _transact(workload: Workload, broker: DyingBroker) -> None:
    """The producer's steps up to its transaction's end. Raises OSError when the broker is gone."""

    def interrupt() -> None:
        if workload.ending is Ending.STOP:
            os.kill(broker.pid, signal.SIGTERM)
            broker.wait_ended(DEATH_TIMEOUT_S)
            raise ConnectionAbortedError

    producer = Producer(NEW_TRANSACTIONAL_ID if workload.is_new else TRANSACTIONAL_ID, workload.kind)
    scenario = Scenario(workload.kind, workload.ending, goes_on=False)
    # On a slow machine the timeout passes before all requests are sent.
    expected = Refused if workload.ending is Ending.TIMEOUT else ConnectionAbortedError
    with RawClient(broker.host, broker.port) as client, suppress(expected):
        producer.connect(client)
        transaction = Transaction(producer, FATE, OFFSETS[FATE])
        transaction.run(steps_of(scenario, transaction, interrupt))
