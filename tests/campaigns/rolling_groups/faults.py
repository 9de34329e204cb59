"""Faults that the campaign must find: members that lose records, and a broker that gives partitions out too early."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.coordinator.group.consumer import member_step
from tests.broker_process import BrokerProcess
from tests.campaigns.planted import Faults, FaultyBroker
from tests.campaigns.rolling_groups.members import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.coordinator.group.consumer.member_step import Reconciliation
    from tests.campaigns.rolling_groups.rolling import MakeMember

_EVERY = 25
# Of the broker.
FAULTS = Faults()


@FAULTS.around(member_step, "reconcile")
def hasty(reconcile: Any, member: Any, given: Reconciliation) -> Any:
    """A partition is given out while another member still has it."""
    return reconcile(member, replace(given, is_held=lambda *_: False))


class _Losing(Member):
    """It commits records that it did not process."""

    def process(self, number: int) -> None:
        if number % _EVERY:
            super().process(number)


class Seeded(NamedTuple):
    """Who is faulty, and what is found of it."""

    make_member: MakeMember
    broker: Callable[..., BrokerProcess]
    complaint: str


def _hasty_broker(*arguments: Any, **options: Any) -> BrokerProcess:
    return FaultyBroker(*arguments, **options).use(__name__, hasty.__name__)


SEEDED: Mapping[str, Seeded] = {
    "lost-record": Seeded(_Losing, BrokerProcess, "is lost"),
    "two-owners": Seeded(Member, _hasty_broker, "has not given it up"),
}
NO_FAULT = Seeded(Member, BrokerProcess, "")
