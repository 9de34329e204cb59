"""Wait for a state of the broker instead of sleeping. A failure says what the state was instead."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypedDict

from odradek.testing import client_metrics, records, state
from odradek.testing.misuse import checked_choice, checked_count, checked_name, checked_within

if TYPE_CHECKING:
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

DEFAULT_WITHIN_S = 10.0
# Pause between two looks. A look at many records is slow, so the pauses of a long wait grow.
_FIRST_PAUSE_S = 0.005
_LAST_PAUSE_S = 0.05
_PAUSE_GROWTH = 1.25


class NotReached(AssertionError):
    """The condition was not met in time; the message says what was there instead."""


class Condition(TypedDict, total=False):
    """The condition to wait for. Give one of ``group``, ``transactional_id``, ``topic`` and ``client_id``.

    A group: its ``state``, its number of ``members``, its total ``lag`` at most. A share group also: at least so many records
    ``acknowledged``, that is accepted since the broker last started. A transactional id: its ``state``. A topic: at least so many
    ``records`` that a consumer of ``isolation_level`` can read. A client: at least so many ``pushes`` of metrics (default 1),
    with ``metric`` among them.
    """

    group: str
    transactional_id: str
    topic: str
    state: str
    members: int
    lag: int
    acknowledged: int
    records: int
    isolation_level: records.Isolation
    client_id: str
    pushes: int
    metric: str


_OF_SUBJECT = {
    "group": {"state", "members", "lag", "acknowledged"},
    "transactional_id": {"state"},
    "topic": {"records", "isolation_level"},
    "client_id": {"pushes", "metric"},
}


def _check(condition: Condition) -> None:
    subjects = [name for name in _OF_SUBJECT if name in condition]
    if len(subjects) != 1:
        raise TypeError(f"wait_for takes one of {', '.join(_OF_SUBJECT)}, not {' and '.join(subjects) or 'none'}")
    allowed = _OF_SUBJECT[subjects[0]]
    others = condition.keys() - allowed - {subjects[0]}
    if others:
        raise TypeError(f"wait_for({subjects[0]}=...) takes {', '.join(sorted(allowed))}, not {', '.join(sorted(others))}")
    for name in condition.keys() & {*_OF_SUBJECT, "metric"}:
        checked_name(name.replace("_", " "), condition.get(name))
    for name in condition.keys() & {"members", "lag", "acknowledged", "records", "pushes"}:
        checked_count(name, condition.get(name))
    if "state" in condition:
        checked_choice(f"state of a {subjects[0].replace('_', ' ')}", condition["state"], _states_of(subjects[0]))
    if "isolation_level" in condition:
        checked_choice("isolation_level", condition["isolation_level"], records.ISOLATION_LEVELS)


def _states_of(subject: str) -> list[str]:
    """Return the states that a group or a transaction may be in."""
    # Imported late, with the coordinators.
    if subject == "transactional_id":
        from odradek.coordinator.transaction.states import STATE_NAMES  # 8.6 ms

        return list(STATE_NAMES.values())
    from odradek.coordinator.group.classic.states import GroupState  # 3.6 ms
    from odradek.coordinator.group.consumer.member import ConsumerGroupState  # 11 ms

    return list(dict.fromkeys(each.value for each in (*GroupState, *ConsumerGroupState)))


async def wait_for(broker: InProcessBroker, condition: Condition, within: float) -> None:
    """Return when the condition is met. Raises NotReached after ``within`` seconds."""
    _check(condition)
    checked_within(within)
    instead = "no answer yet"
    pause_s = _FIRST_PAUSE_S
    try:
        async with asyncio.timeout(within):
            while True:
                is_met, instead = await _look(broker, condition)
                if is_met:
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * _PAUSE_GROWTH, _LAST_PAUSE_S)
    except TimeoutError:
        raise NotReached(f"waited {within:g} s for {_text(condition)}; there is {instead}") from None


async def _look(broker: InProcessBroker, condition: Condition) -> tuple[bool, str]:
    """Return whether the condition is met, and the present state in words."""
    if "group" in condition:
        groups = await state.groups(broker)
        group = groups.get(condition["group"])
        if group is None:
            return False, f"no such group; groups: {', '.join(groups) or 'none'}"
        return _is_met_by_group(condition, group), str(group)
    if "transactional_id" in condition:
        transactions = await state.transactions(broker)
        transaction = transactions.get(condition["transactional_id"])
        if transaction is None:
            return False, f"no such transactional id; transactional ids: {', '.join(transactions) or 'none'}"
        return condition.get("state") in (None, transaction.state), str(transaction)
    if "client_id" in condition:
        return _look_at_client(broker, condition)
    return await _look_at_topic(broker, condition)


def _is_met_by_group(condition: Condition, group: state.Group) -> bool:
    return (
        condition.get("state") in (None, group.state)
        and condition.get("members") in (None, len(group.members))
        # A group without partitions has no known lag.
        and ("lag" not in condition or (bool(group.lag) and group.total_lag <= condition["lag"]))
        and group.acknowledged >= condition.get("acknowledged", 0)
    )


def _look_at_client(broker: InProcessBroker, condition: Condition) -> tuple[bool, str]:
    found = client_metrics.measured(broker.client_pushes, condition["client_id"])
    if not found.pushes:
        everybody = client_metrics.measured(broker.client_pushes, None)
        others = sorted({push.client_id for push in everybody.pushes})
        return False, f"no push of that client; clients that have pushed: {', '.join(others) or 'none'}"
    is_met = len(found.pushes) >= condition.get("pushes", 1) and condition.get("metric") in (None, *found.names)
    return is_met, f"a client with {len(found.pushes)} pushes; metrics: {', '.join(found.names) or 'none'}"


async def _look_at_topic(broker: InProcessBroker, condition: Condition) -> tuple[bool, str]:
    topic = condition["topic"]
    if topic not in state.topics(broker):
        return False, f"no such topic; topics: {', '.join(state.topics(broker)) or 'none'}"
    found = await records.read(broker, topic, condition.get("isolation_level", "read_uncommitted"))
    last = f", the last one {found[-1]}" if found else ""
    return len(found) >= condition.get("records", 0), f"a topic with {len(found)} records{last}"


def _text(condition: Condition) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in condition.items())
