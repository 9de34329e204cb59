"""The chaos: one harm after the other comes over the cluster, while the clients work.

Two of three replicas are to have what is acknowledged, so nothing may be lost. After each harm everything works again within a
bounded time, and so it does during those that leave the others able to go on. At the end all orders are carried out, once each
(``accounts``); every replica is in sync again, and has the same bytes; no broker has had a fault, or has kept what it should not.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.cluster_chaos.administrator import Administrator, check_topics
from tests.campaigns.cluster_chaos.clients import (
    CLIENT,
    GROUP,
    HUNG,
    HURRIED,
    IDLE,
    LEDGER,
    ORDERS,
    PARTITIONS,
    Feeder,
    Hurried,
    Teller,
    Transactor,
    Violation,
    check_hurried,
    check_ledger,
    check_orders,
    committed_offsets,
    read_all,
)
from tests.campaigns.cluster_chaos.harms import HARMS, GoesOn, deck
from tests.campaigns.cluster_chaos.nodes import NODES, Nodes
from tests.campaigns.cluster_chaos.views import Silent, are_in_sync, new_producer_id, open_transaction, partitions_by

TELLERS: Final = 3
IN_A_HURRY: Final = 2
# Of one step. A machine that is busy with other things has to fit in.
SETTLE_S: Final = 90.0
# What a broker without clients may have: a few connections to each other broker and to the controller, and their tasks.
# Of transactional clients, each of whom may be librdkafka's fault; and one in four harms.
MOST_STUCK: Final = 3
MOST_TASKS: Final = 20
MOST_SOCKETS: Final = 40
MOST_MEMORY_MIB: Final = 200
METADATA: Final = "__cluster_metadata-0"
_POLL_S: Final = 0.1


class Chaos:
    """One run on one kind of controller. ``fault`` is one of ``faults``; a harm lasts ``pace`` times as long as usual."""

    def __init__(
        self,
        scratch: Path,
        controller: str,
        seed: int,
        *,
        fault: str | None = None,
        orders_a_second: float = 100,
        pace: float = 1.0,
    ) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._orders_a_second = orders_a_second
        self._pace = pace
        self.controller = controller
        self.nodes = Nodes(scratch, controller, fault)
        self._harms: Counter[str] = Counter()
        self._slowest: dict[str, tuple[float, str]] = {}
        self._last = "nothing"
        self._producer_ids: set[int] = set()
        self._feeder: Feeder | None = None
        # Tellers, and producers in a hurry.
        self._transactors: list[Transactor] = []
        self._hurried: list[Hurried] = []
        self._administrator: Administrator | None = None
        self._held: list[str] = []

    def run(self, seconds: float, names: tuple[str, ...] = tuple(HARMS)) -> str:
        """The report. Raises Violation."""
        self._begin()
        end = time.monotonic() + seconds
        for name, node_id in self._draw(names):
            if time.monotonic() > end:
                break
            self._harm(name, node_id)
        self._finish()
        return self.report()

    def report(self) -> str:
        """What was done."""
        feeder = self._feeder
        reasons = Counter(reason for teller in self._transactors for reason in teller.reasons)
        slowest = "; ".join(f"slowest {what} {took_s:.1f} s ({name})" for what, (took_s, name) in self._slowest.items())
        return (
            f"controller {self.controller}: {feeder.sent if feeder else 0} orders,"
            f" {len(feeder.acknowledged) if feeder else 0} acknowledged,"
            f" {sum(teller.committed for teller in self._transactors)} transactions;"
            f" {self._harms.total()} harms: {dict(self._harms)}; {slowest or 'no harm was survived'};"
            f" transactional clients began anew: {dict(reasons)}; {len(self._producer_ids)} producer ids;"
            f" {self._told_of_topics()};"
            f" {', '.join(self._held)}"
        )

    def _told_of_topics(self) -> str:
        made = self._administrator
        return "" if made is None else f"topics: {len(made.created)} and {len(made.deleted)} deleted, {len(made.unknown)} unknown"

    def close(self) -> None:
        """End all processes."""
        self.nodes.close()

    # ------------------------------------------------------------------------------------------------------------------- harming

    def _begin(self) -> None:
        self.nodes.start()
        admin = AdminClient({"bootstrap.servers": self.nodes.servers, **CLIENT})
        for topic in admin.create_topics([NewTopic(name, PARTITIONS, len(NODES)) for name in (ORDERS, LEDGER, HURRIED)]).values():
            topic.result(30)
        self._take_producer_ids()
        self._take_producer_ids()
        self._feeder = Feeder(self.nodes.servers, self._orders_a_second)
        self._hurried = [Hurried(self.nodes.servers, f"hurried-{number}") for number in range(IN_A_HURRY)]
        tellers = [Teller(self.nodes.servers, f"teller-{number}") for number in range(TELLERS)]
        self._transactors = [*tellers, *self._hurried]
        self._administrator = Administrator(self.nodes.servers, self._seed)
        self._settle("began", self._marks())

    def _draw(self, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        while True:
            yield from deck(self._random, names)

    def _harm(self, name: str, node_id: int) -> None:
        harm = HARMS[name]
        self._harms[name] += 1
        self._last = f"{name} {node_id}"
        self._pause(0.5, 2)
        harm.begin(self.nodes, node_id)
        self._pause(*harm.lasts_s)
        if harm.goes_on is not GoesOn.NOTHING:
            marks = self._marks()
            self._within("progress", lambda: self._has_gone_on(marks, harm.goes_on), f"{harm.goes_on.value} meanwhile")
        harm.end(self.nodes, node_id)
        self._settle("recovery", self._marks())
        self._take_producer_ids()

    def _settle(self, what: str, marks: list[int]) -> None:
        """Until all is as it was before."""
        began = time.monotonic()
        self._until(lambda: all(map(int.__gt__, self._marks(), marks)), "every partition and every teller goes on")
        self._until(self._are_in_sync, "all replicas are in sync")
        self._note(what, began)

    def _within(self, what: str, condition: Callable[[], bool], told: str) -> None:
        began = time.monotonic()
        self._until(condition, told)
        self._note(what, began)

    def _note(self, what: str, began: float) -> None:
        took = time.monotonic() - began, self._last
        self._slowest[what] = max(self._slowest.get(what, took), took)

    def _marks(self) -> list[int]:
        """How far each partition of orders is acknowledged, and how many transactions each teller has committed."""
        assert self._feeder is not None
        if self._feeder.failure:
            raise Violation(f"after {self._last}, the producer of orders has failed: {self._feeder.failure}")
        return [*self._feeder.counts, *(teller.committed for teller in self._transactors)]

    def _has_gone_on(self, marks: list[int], what: GoesOn) -> bool:
        """Every partition of orders, and some teller where those go on."""
        now = self._marks()
        are_carried_out = what is not GoesOn.EVERYTHING or sum(now[PARTITIONS:]) > sum(marks[PARTITIONS:])
        return are_carried_out and all(map(int.__gt__, now[:PARTITIONS], marks[:PARTITIONS]))

    def _take_producer_ids(self) -> None:
        for node_id in NODES:
            try:
                producer_id = new_producer_id(self.nodes.brokers.ports[node_id])
            except Silent:
                continue
            if producer_id in self._producer_ids:
                raise Violation(f"producer id {producer_id} was given twice")
            self._producer_ids.add(producer_id)

    # -------------------------------------------------------------------------------------------------------------------- at rest

    def _finish(self) -> None:
        feeder = self._feeder
        assert feeder is not None
        assert self._administrator is not None
        self._administrator.stop()
        unknown = feeder.stop()
        if unknown:
            raise Violation(f"{unknown} orders have no answer")
        servers = self.nodes.servers
        orders = {index: [int(value) for value in values] for index, values in read_all(servers, ORDERS).items()}
        check_orders(orders, feeder.acknowledged, feeder.sent)
        ends = {index: self._end(ORDERS, index) for index in range(PARTITIONS)}
        self._until(lambda: committed_offsets(self.nodes.servers, GROUP) == ends, "all orders are carried out")
        for teller in self._transactors:
            teller.stop()
        self._until(self._is_nothing_open, "no transaction hangs")
        fates = {value: fate for hurried in self._hurried for value, fate in hurried.fates.items()}
        check_hurried(read_all(servers, HURRIED), fates)
        for hurried in self._hurried:
            if hurried.unreasonable:
                raise Violation(f"transactions were refused without a reason: {hurried.unreasonable[:3]}")
        check_ledger(read_all(servers, LEDGER), [number for numbers in orders.values() for number in numbers])
        self._until(self._are_in_sync, "all replicas are in sync")
        self._until(self._do_replicas_agree, "all replicas are where they belong, and have the same bytes")
        topics = {topic for topic, _ in partitions_by(self.nodes.brokers.ports[NODES[0]])}
        check_topics(topics, self._administrator.created, self._administrator.deleted)
        stuck = sum(teller.reasons.count(each) for teller in self._transactors for each in (HUNG, IDLE))
        if stuck > max(MOST_STUCK, self._harms.total() / 4):
            raise Violation(f"{stuck} transactional clients got stuck")
        for name, log in self.nodes.logs().items():
            if "Traceback" in log:
                raise Violation(f"{name} has had a fault: {log.partition('Traceback')[2][:3000]}")
        for node_id in NODES:
            self._check_held(node_id)

    def _check_held(self, node_id: int) -> None:
        brokers = self.nodes.brokers
        tasks, sockets, memory_mib = brokers.tasks(node_id), brokers.sockets(node_id), brokers.memory_mib(node_id)
        self._held.append(f"broker {node_id}: {tasks} tasks, {sockets} sockets, {memory_mib:.0f} MiB")
        if tasks > MOST_TASKS or sockets > MOST_SOCKETS or memory_mib > MOST_MEMORY_MIB:
            raise Violation(self._held[-1])

    def _end(self, topic: str, index: int) -> int:
        consumer = Consumer({"bootstrap.servers": self.nodes.servers, "group.id": "asks", **CLIENT})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, index), 30)[1]
        finally:
            consumer.close()

    def _are_in_sync(self) -> bool:
        try:
            views = {node_id: partitions_by(port) for node_id, port in self.nodes.brokers.ports.items()}
        except Silent:
            return False
        return are_in_sync(views, NODES)

    def _is_nothing_open(self) -> bool:
        ports = self.nodes.brokers.ports
        try:
            return not open_transaction(ports, partitions_by(ports[NODES[0]]))
        except (Silent, KeyError):
            return False

    def _do_replicas_agree(self) -> bool:
        data = self.nodes.brokers.data
        known = {f"{topic}-{index}" for topic, index in partitions_by(self.nodes.brokers.ports[NODES[0]])}
        found = [{path.name for path in data(node_id).glob("*-?")} - {METADATA} for node_id in NODES]
        return all(each == known for each in found) and all(
            len({_bytes(data(node_id) / name) for node_id in NODES}) == 1 for name in known
        )

    def _pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self._random.uniform(least_s, most_s) * self._pace)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Violation(f"not within {SETTLE_S:.0f} s of {self._last}: {what}")
            for teller in self._transactors:
                teller.begin_anew_if_stuck()
            time.sleep(_POLL_S)


def _bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
