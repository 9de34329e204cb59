"""The life of the demo: fifty seconds of clients' events, with some trouble among them.

    group     library            events
    checkout  confluent-kafka    one member, two, three, and two again; cooperative
    invoices  confluent-kafka    three static members, restarted one after the other: no rebalance
    clicks    aiokafka           two members, and a third that repeatedly joins and leaves  trouble
    billing   kafka-python       one of its partitions is no longer polled                  trouble
    search    confluent-kafka    three topics, two members: range gives one twice as much
    shipping  confluent-kafka    the consumer protocol: one partition begins with a record
                                 that its owner fails at, and never commits          trouble
                                 a member is slow to give up a partition to a third

    transactional id             events
    payments-0, payments-1       commit
    refunds-0                    aborts every second transaction                            trouble
    reports-0                    one transaction takes twelve seconds                       trouble
    exports-0                    begins one and stops: aborted at its timeout               trouble

The pipeline must find all of the trouble, and nothing else as grave.
"""

import threading
import time
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic

from demo.members import (
    AiokafkaMember,
    ConsumerProtocolMember,
    KafkaPythonMember,
    LibrdkafkaMember,
    Member,
    Membership,
    leave_together,
)
from demo.producers import Feed, Habits, HangingTransaction, Transactions

DURATION_S = 50.0
BROKER_SETTINGS = {
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}
"""Few partitions, since one process reads them all; and a transaction that is past its timeout is looked for every second."""

THRESHOLDS = {"stuck_s": 15.0}
"""Fifty seconds are short: what elsewhere is a pause is here a partition that stands still."""

PLANTED_HIGH = {
    ("flapping_member", "clicks"),
    ("rebalance_storm", "clicks"),
    ("stuck_partition", "billing"),
    ("never_committed", "shipping"),
    ("hanging_transaction", "exports-0"),
}
"""(kind, subject) of the troubles that are to be found, with severity high, and nothing besides."""

PLANTED_MEDIUM = {("slow_transaction", "reports-0"), ("aborted_share", "refunds")}
"""The same of severity medium, where others may be found too."""

_TOPICS = {
    "orders": 6,
    "invoices": 3,
    "clicks": 4,
    "billing": 4,
    "titles": 3,
    "bodies": 3,
    "images": 3,
    "shipping": 4,
    "payments": 2,
    "refunds": 2,
    "reports": 2,
    "exports": 2,
}
_FED = ("orders", "invoices", "clicks", "billing", "titles", "bodies", "images", "shipping")
_FLAPS = 8
_FLAP_S = 1.6
_SLOW_S = 4.0
_TIMEOUT_S = 20.0

_MEMBERSHIPS = {
    **{
        name: Membership(group="checkout", topics=("orders",), client_id=name, assignor="cooperative-sticky")
        for name in ("checkout-a", "checkout-b", "checkout-c")
    },
    **{
        name: Membership(group="invoices", topics=("invoices",), client_id=name, instance_id=name)
        for name in ("invoices-a", "invoices-b", "invoices-c")
    },
    **{name: Membership(group="clicks", topics=("clicks",), client_id=name) for name in ("clicks-a", "clicks-b", "clicks-flaky")},
    **{name: Membership(group="billing", topics=("billing",), client_id=name) for name in ("billing-a", "billing-b")},
    **{
        name: Membership(group="search", topics=("titles", "bodies", "images"), client_id=name)
        for name in ("search-a", "search-b")
    },
    **{
        name: Membership(group="shipping", topics=("shipping",), client_id=name, slow_s=_SLOW_S, poisoned=0)
        for name in ("shipping-a", "shipping-b", "shipping-c")
    },
}
_LIBRARIES: dict[str, type[Member]] = {
    "checkout": LibrdkafkaMember,
    "invoices": LibrdkafkaMember,
    "clicks": AiokafkaMember,
    "billing": KafkaPythonMember,
    "search": LibrdkafkaMember,
    "shipping": ConsumerProtocolMember,
}


def script() -> list[tuple[float, str, str]]:
    """(seconds from the start, event, subject), in order."""
    late = {"checkout-b", "checkout-c", "clicks-flaky", "shipping-c"}
    steps = [(0.0, "join", name) for name in _MEMBERSHIPS if name not in late]
    steps += [(8.0, "join", "checkout-b"), (16.0, "join", "checkout-c"), (36.0, "leave", "checkout-c")]
    steps += [(12.0 + 5 * number, "restart", f"invoices-{name}") for number, name in enumerate("abc")]
    for flap in range(_FLAPS):
        joins_at_s = 10.0 + 2 * _FLAP_S * flap
        steps += [(joins_at_s, "join", "clicks-flaky"), (joins_at_s + _FLAP_S, "leave", "clicks-flaky")]
    steps += [(20.0, "join", "shipping-c"), (40.0, "leave", "shipping-c")]
    steps += [(6.0, "hang", "exports-0"), (15.0, "stick", "billing")]
    steps += [(DURATION_S - 2, "stop", "producers"), (DURATION_S, "stop", "members")]
    return sorted(steps, key=lambda step: step[0])


class Life:
    """The events at the broker ``address``: call ``live`` once."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._members: dict[str, Member] = {}
        self._producers: list[Feed | Transactions] = []
        self._hanging: list[HangingTransaction] = []

    def live(self, on_progress: Callable[[float], None] = lambda _: None) -> None:
        """Run all events, and return when every client has ended, except the producer that hangs."""
        self._create_topics()
        self._start_producers()
        happen = {
            "join": self._join,
            "leave": lambda name: self._members.pop(name).tell_to_leave(),
            "restart": self._restart,
            "hang": lambda name: self._hanging.append(HangingTransaction(self._address, name, "exports", timeout_ms=12_000)),
            "stick": self._stick,
            "stop": self._stop,
        }
        started = time.monotonic()
        for at_s, what, who in script():
            while (left_s := started + at_s - time.monotonic()) > 0:
                on_progress(time.monotonic() - started)
                threading.Event().wait(min(1.0, left_s))
            happen[what](who)

    def _create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._address, "log_level": 0})
        created = admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in _TOPICS.items()])
        for future in created.values():
            future.result(_TIMEOUT_S)

    def _start_producers(self) -> None:
        fed = [(topic, partition) for topic in _FED for partition in range(_TOPICS[topic])]
        self._producers = [
            Feed(self._address, fed, pause_s=0.1),
            Transactions(self._address, "payments-0", "payments", Habits()),
            Transactions(self._address, "payments-1", "payments", Habits(pause_s=0.7)),
            Transactions(self._address, "refunds-0", "refunds", Habits(pause_s=1.0, abort_every=2)),
            Transactions(self._address, "reports-0", "reports", Habits(pause_s=1.0, slow_at=8, slow_s=12.0)),
        ]
        for producer in self._producers:
            producer.start()

    def _join(self, name: str) -> None:
        membership = _MEMBERSHIPS[name]
        self._members[name] = _LIBRARIES[membership.group](self._address, membership)

    def _restart(self, name: str) -> None:
        self._members[name].leave()
        self._join(name)

    def _stick(self, topic: str) -> None:
        for member in self._members.values():
            if isinstance(member, KafkaPythonMember):
                # One of the two members owns partition 0; the other ignores this.
                member.stick(topic, 0)

    def _stop(self, who: str) -> None:
        if who == "members":
            leave_together(self._members.values())
        else:
            for producer in self._producers:
                producer.end()
