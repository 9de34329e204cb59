"""The clients that stay while brokers come and go: a feeder of orders, tellers with transactions, a watcher of a plain group.

They are ``cluster_chaos.clients`` and ``watcher``. At the end every order that was acknowledged is there, once and in its place,
every order has its two entries in the ledger, and the watcher was given every order, and none in front of a commit.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.cluster_chaos.clients import (
    CLIENT,
    GROUP,
    LEDGER,
    ORDERS,
    PARTITIONS,
    Feeder,
    Teller,
    Violation,
    check_ledger,
    check_orders,
    committed_offsets,
    read_all,
)
from tests.campaigns.growing_out.watcher import GROUP as WATCHERS
from tests.campaigns.growing_out.watcher import Watcher

_ORDERS_A_SECOND = 100


class Work(NamedTuple):
    """How much was done: orders acknowledged, transactions committed, orders read by the watcher."""

    acknowledged: int
    committed: int
    watched: int


class LiveClients:
    """``servers`` are those of every broker there will be."""

    def __init__(self, servers: str, *, replicas: int, patience_s: float = 90) -> None:
        self._servers = servers
        self._patience_s = patience_s
        admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
        topics = [NewTopic(name, PARTITIONS, replicas) for name in (ORDERS, LEDGER)]
        for topic in admin.create_topics(topics).values():
            topic.result(30)
        # With more, librdkafka doubles orders when a partition moves: docs/compatibility.md.
        self._feeder = Feeder(servers, _ORDERS_A_SECOND, in_flight=1)
        self._tellers = [Teller(servers, f"teller-{number}") for number in range(2)]
        self._watcher = Watcher(servers)

    @property
    def work(self) -> Work:
        """What has been done up to now."""
        committed = sum(teller.committed for teller in self._tellers)
        return Work(len(self._feeder.acknowledged), committed, self._watcher.progress.read)

    @property
    def watcher_rebalances(self) -> int:
        """How often the watcher was given its partitions."""
        return self._watcher.rebalances

    def go_on(self, orders: int = 50, transactions: int = 5) -> None:
        """Wait until all have got on by so much. Raises Violation."""
        before = self.work
        wanted = Work(before.acknowledged + orders, before.committed + transactions, before.watched + orders)
        self._until(lambda: all(now >= then for now, then in zip(self.work, wanted, strict=True)), f"from {before} to {wanted}")

    def finish(self) -> list[str]:
        """Stop all; what is not as it has to be."""
        unknown = self._feeder.stop()
        found = [f"{unknown} orders have no answer"] if unknown else []
        orders = {index: [int(value) for value in values] for index, values in read_all(self._servers, ORDERS).items()}
        ends = {index: len(numbers) for index, numbers in orders.items()}
        checks: list[Callable[[], None]] = [
            lambda: self._wait_for_end(GROUP, ends),
            lambda: self._wait_for_end(WATCHERS, ends),
            *(client.stop for client in (*self._tellers, self._watcher)),
            lambda: check_orders(orders, self._feeder.acknowledged, self._feeder.sent),
            lambda: check_ledger(
                read_all(self._servers, LEDGER), [number for numbers in orders.values() for number in set(numbers)]
            ),
        ]
        for check in checks:
            try:
                check()
            except Violation as violation:
                found.append(str(violation))
        return found + self._watcher.progress.differences

    def report(self) -> str:
        """One line."""
        reasons = Counter(reason for teller in self._tellers for reason in teller.reasons)
        work = self.work
        return (
            f"{self._feeder.sent} orders, {work.acknowledged} acknowledged, {work.committed} transactions, {work.watched} orders "
            f"read by the plain group in {self.watcher_rebalances} assignments; transactional clients began anew: "
            f"{dict(reasons) or 'never'}"
        )

    def _wait_for_end(self, group: str, ends: dict[int, int]) -> None:
        self._until(lambda: committed_offsets(self._servers, group) == ends, f"{group} have come to the end, {ends}")

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + self._patience_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise Violation(f"not within {self._patience_s:.0f} s: {what}; {self.report()}")
            time.sleep(0.1)
