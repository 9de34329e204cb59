"""Faults that the campaign must find: members that lose records, and a broker that gives partitions out too early.

    python -m tests.campaigns.rolling_groups.faults serve ...

is ``odradek serve``, interpreted, that gives a partition out while another member still has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.__main__ import start
from odradek.coordinator.group.consumer import member_step
from odradek.coordinator.group.consumer.current_assignment import reconcile
from tests.broker_process import BrokerProcess
from tests.campaigns.rolling_groups.members import Member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.coordinator.group.consumer.current_assignment import Reconciliation
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from tests.campaigns.rolling_groups.rolling import MakeMember

_EVERY = 25


class _Losing(Member):
    """It commits records that it did not process."""

    def process(self, number: int) -> None:
        if number % _EVERY:
            super().process(number)


class _HastyBroker(BrokerProcess):
    program = ("-m", __name__)


class Fault(NamedTuple):
    """Who is faulty, and what is found of it."""

    make_member: MakeMember
    broker: type[BrokerProcess]
    complaint: str


FAULTS: Mapping[str, Fault] = {
    "lost-record": Fault(_Losing, BrokerProcess, "is lost"),
    "two-owners": Fault(Member, _HastyBroker, "has not given it up"),
}
NO_FAULT = Fault(Member, BrokerProcess, "")


def _hasty(member: ConsumerMember, given: Reconciliation) -> ConsumerMember:
    return reconcile(member, replace(given, is_held=lambda *_: False))


if __name__ == "__main__":
    member_step.reconcile = _hasty
    start()
