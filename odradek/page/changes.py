"""The changes that the page makes, by the name in their address: each reads its form, and acts with the rights of its user."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.page import actions, group_actions
from odradek.page.actions import ActionFailed
from odradek.page.group_actions import Target
from odradek.page.render import count, url
from odradek.page.views import whole
from odradek.page.views.topic import moment_ms
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.page.facts.source import Partition
    from odradek.page.views import Call, Query
    from odradek.testing.threaded import Broker


class Outcome(NamedTuple):
    """The result of a change: a line for people, and where to go on, if not where the form was."""

    text: str
    location: str = ""


class Change(NamedTuple):
    """A change. ``make`` raises ActionFailed and FactError. ``needs_token``: it is a lever."""

    title: str
    make: Callable[[Call], Awaitable[Outcome]]
    needs_token: bool = False


def _whole(form: Query, name: str, *, least: int | None = None) -> int:
    """Return the whole number of a field. Raises ActionFailed."""
    number = form.number(name)
    if number is None or (least is not None and number < least):
        at_least = "" if least is None else f" of at least {least}"
        raise ActionFailed(f"{name} must be a whole number{at_least}, not {form.text(name)[:100]!r}")
    return number


def _optional(form: Query, name: str) -> int | None:
    return _whole(form, name, least=1) if form.text(name).strip() else None


def _decimal(form: Query, name: str) -> float:
    try:
        return float(form.text(name))
    except ValueError:
        raise ActionFailed(f"{name} must be a number, not {form.text(name)[:100]!r}") from None


async def _create_topic(call: Call) -> Outcome:
    form = call.query
    name = form.text("name").strip()
    await actions.create_topic(call.source, name, _optional(form, "partitions"), _optional(form, "replicas"))
    return Outcome(f"Created the topic {name}.", url("topic", name=name))


async def _delete_topic(call: Call) -> Outcome:
    name = call.query.text("name")
    await actions.delete_topic(call.source, name)
    return Outcome(f"Deleted the topic {name}.", "/")


async def _add_partitions(call: Call) -> Outcome:
    name, wanted = call.query.text("name"), _whole(call.query, "count", least=1)
    await actions.add_partitions(call.source, name, wanted)
    return Outcome(f"{name} has {count(wanted, 'partition')} now.")


async def _set_config(call: Call) -> Outcome:
    form = call.query
    name, config = form.text("name"), form.text("config").strip()
    value = None if form.text("to_default") else form.text("value")
    await actions.set_config(call.source, name, config, value)
    return Outcome(f"{config} is back to its default." if value is None else f"{config} is {value} now.")


async def _delete_records(call: Call) -> Outcome:
    form = call.query
    name, partition = form.text("name"), _whole(form, "partition", least=0)
    start = await actions.delete_records(call.source, name, partition, _whole(form, "before", least=-1))
    return Outcome(f"{name}-{partition} begins at offset {start:,} now.")


def _bytes(text: str, *, is_hex: bool) -> bytes:
    """Return the bytes of a field. Raises ActionFailed."""
    if not is_hex:
        # Browsers send CRLF for each end of a line.
        return text.replace("\r\n", "\n").encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ActionFailed(f"this is not hex: {text[:60]!r}") from None


async def _produce(call: Call) -> Outcome:
    form = call.query
    name, is_hex = form.text("name"), form.text("encoding") == "hex"
    key = None if form.text("key_is_null") else _bytes(form.text("key"), is_hex=is_hex)
    value = None if form.text("value_is_null") else _bytes(form.text("value"), is_hex=is_hex)
    headers: list[tuple[str, bytes | None]] = []
    for line in form.text("headers").replace("\r\n", "\n").split("\n"):
        header, equals, text = line.partition("=")
        if line.strip():
            headers.append((header.strip(), _bytes(text, is_hex=is_hex) if equals else None))
    partition = _whole(form, "partition", least=0) if form.text("partition").strip() else None
    partition, offset = await actions.produce(call.source, name, key, value, headers, partition)
    return Outcome(f"Wrote offset {offset:,} of partition {partition}.")


def _partitions(form: Query) -> list[Partition]:
    """Return the partitions that were chosen. Raises ActionFailed."""
    found = set()
    for text in form.texts("p"):
        topic, _, index = text.rpartition("-")
        number = whole(index)
        if not topic or number is None:
            raise ActionFailed(f"{text[:100]!r} is not a partition")
        found.add((topic, number))
    if not found:
        raise ActionFailed("no partition is chosen: check some in the table")
    return sorted(found)


def _target(form: Query) -> Target:
    """Return where offsets go. Raises ActionFailed."""
    to = form.text("to")
    if to in ("start", "end"):
        return Target(to)
    if to in ("offset", "shift"):
        return Target(to, _whole(form, "number", least=0 if to == "offset" else None))
    time_ms = moment_ms(form.text("time"))
    if time_ms is None:
        raise ActionFailed(f"{form.text('time')[:100]!r} is not a time: give 2026-01-31T12:00:00, or ms since 1970")
    return Target("time", time_ms)


async def _set_offsets(call: Call) -> Outcome:
    form = call.query
    changed = await group_actions.set_offsets(call.source, form.text("id"), _partitions(form), _target(form))
    told = ", ".join(f"{each.topic}-{each.partition}: {_shown(each.before)} → {each.after:,}" for each in changed[:4])
    return Outcome(f"Set {count(len(changed), 'offset')}. {told}{' …' if len(changed) > 4 else ''}")


def _shown(offset: int | None) -> str:
    return "none" if offset is None else f"{offset:,}"


async def _delete_offsets(call: Call) -> Outcome:
    partitions = _partitions(call.query)
    await group_actions.delete_offsets(call.source, call.query.text("id"), partitions)
    return Outcome(f"Deleted {count(len(partitions), 'offset')}.")


async def _delete_group(call: Call) -> Outcome:
    group = call.query.text("id")
    await group_actions.delete_group(call.source, group)
    return Outcome(f"Deleted the group {group}.", "/")


async def _remove_member(call: Call) -> Outcome:
    member = call.query.text("member")
    await group_actions.remove_member(call.source, call.query.text("id"), member)
    return Outcome(f"Removed {member}.")


async def _abort(call: Call) -> Outcome:
    name = call.query.text("transactional_id")
    epoch = await group_actions.abort_transaction(call.source, name)
    return Outcome(f"Aborted the transaction of {name}. Its producer is fenced: the epoch is {epoch} now.")


async def _abort_hanging(call: Call) -> Outcome:
    form = call.query
    topic, partition = form.text("topic"), _whole(form, "partition", least=0)
    await group_actions.abort_hanging(call.source, topic, partition, _whole(form, "producer", least=0))
    return Outcome(f"Wrote an abort marker to {topic}-{partition}.")


_DURATIONS: Final = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


async def _advance(call: Call) -> Outcome:
    amount, unit = _decimal(call.query, "amount"), call.query.text("unit")
    await call.broker.clock.advance(milliseconds=amount * _DURATIONS.get(unit, 1))
    return Outcome(f"The clock is {amount:g} {unit} further.")


async def _set_speed(call: Call) -> Outcome:
    speed = _decimal(call.query, "speed")
    call.broker.clock.speed = speed
    return Outcome(f"The clock's speed is {speed:g}.")


_FAULT_WORDS: Final = ("api", "client_id", "group", "transactional_id", "topic")
_FAULT_NUMBERS: Final = ("partition", "nth", "after", "times", "delay_ms", "throttle_ms")


async def _add_fault(call: Call) -> Outcome:
    form = call.query
    words: dict[str, Any] = {name: form.text(name).strip() for name in _FAULT_WORDS if form.text(name).strip()}
    words |= {name: _whole(form, name, least=0) for name in _FAULT_NUMBERS if form.text(name).strip()}
    what = form.text("what")
    if what == "error":
        words["error"] = form.text("error").strip()
    elif what == "drop":
        words["drop"] = True
    elif what in ("close", "restart"):
        words[what] = form.text("moment") or "before"
    fault, number = call.broker.faults.add(**words), call.held.new_id()
    call.held.faults[call.broker][number] = fault
    return Outcome(f"Added rule {number}.")


async def _remove_fault(call: Call) -> Outcome:
    number = call.query.text("number")
    faults = call.held.faults[call.broker]
    if number not in faults:
        raise ActionFailed(f"there is no rule {number}")
    faults.pop(number).remove()
    return Outcome(f"Removed rule {number}.")


async def _snapshot(call: Call) -> Outcome:
    snapshot, number = await call.broker.snapshot(), call.held.new_id()
    call.held.snapshots[number] = snapshot
    return Outcome(f"Took snapshot {number}.")


async def _restore(call: Call) -> Outcome:
    number = call.query.text("number")
    if number not in call.held.snapshots:
        raise ActionFailed(f"there is no snapshot {number}")
    await call.broker.restore(call.held.snapshots[number])
    return Outcome(f"Restored snapshot {number}.")


async def _end_delivery(call: Call, *, is_rejected: bool) -> Outcome:
    form = call.query
    topic, partition = form.text("topic"), _whole(form, "partition", least=0)
    first, last = _whole(form, "first", least=0), _whole(form, "last", least=0)
    holding = group_actions.Holding(form.text("id"), form.text("member"), topic, partition, first, last)
    await group_actions.end_delivery(call.source, holding, is_rejected=is_rejected)
    return Outcome(f"{'Rejected' if is_rejected else 'Released'} {count(last - first + 1, 'record')} of {topic}-{partition}.")


def _lever(title: str, make: Callable[[Call], Awaitable[Outcome]]) -> Change:
    """Return a change that needs the token, and fails with one line where the kit refuses it."""

    async def guarded(call: Call) -> Outcome:
        try:
            return await make(call)
        except KafkaError as error:
            raise ActionFailed(error.reason or error.code.name) from error
        except (AssertionError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise ActionFailed(" ".join(str(error).split())) from error

    return Change(title, guarded, needs_token=True)


def _plain_lever(title: str, act: Callable[[Broker], Awaitable[object]], told: str) -> Change:
    """Return a lever that needs nothing but the broker."""

    async def make(call: Call) -> Outcome:
        await act(call.broker)
        return Outcome(told)

    return _lever(title, make)


CHANGES: Final[dict[str, Change]] = {
    "create-topic": Change("Create the topic", _create_topic),
    "delete-topic": Change("Delete the topic", _delete_topic),
    "add-partitions": Change("Add partitions", _add_partitions),
    "set-config": Change("Set the config", _set_config),
    "delete-records": Change("Delete records", _delete_records),
    "produce": Change("Send the record", _produce),
    "set-offsets": Change("Set offsets", _set_offsets),
    "delete-offsets": Change("Delete offsets", _delete_offsets),
    "delete-group": Change("Delete the group", _delete_group),
    "remove-member": Change("Remove the member", _remove_member),
    "abort": Change("Abort the transaction", _abort),
    "abort-hanging": Change("Abort the transaction", _abort_hanging),
    "release-records": _lever("Release the records", partial(_end_delivery, is_rejected=False)),
    "reject-records": _lever("Reject the records", partial(_end_delivery, is_rejected=True)),
    "advance": _lever("Move the clock", _advance),
    "freeze": _plain_lever("Freeze the clock", lambda broker: broker.clock.freeze(), "The clock stands still."),
    "resume": _plain_lever("Resume the clock", lambda broker: broker.clock.resume(), "The clock runs."),
    "set-speed": _lever("Set the clock's speed", _set_speed),
    "add-fault": _lever("Add the rule", _add_fault),
    "remove-fault": _lever("Remove the rule", _remove_fault),
    "snapshot": _lever("Take a snapshot", _snapshot),
    "restore": _lever("Restore the snapshot", _restore),
    "stop": _plain_lever("Stop the broker", lambda broker: broker.stop(), "The broker has stopped. This page goes on."),
    "kill": _plain_lever("Kill the broker", lambda broker: broker.kill(), "The broker is dead. This page goes on."),
    "start": _plain_lever("Start the broker", lambda broker: broker.start(), "The broker runs."),
}
