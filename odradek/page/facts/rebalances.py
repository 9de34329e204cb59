"""The last rebalances of a group that this broker coordinates, with their reasons, from the coordinator's own log lines.

The coordinator says in the broker's log why it rebalances, who joined and left, and which partitions moved. The test kit's
broker keeps the last lines, across restarts of the broker within one process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from odradek.page.facts.source import Source
    from odradek.testing.in_process import LogLine

MOST_REBALANCES: Final = 50
_ENDS: Final = {
    "rebalance completed": "completed",
    "rebalance abandoned": "abandoned",
    "rebalance left the group empty": "emptied",
}
_ASSIGNED: Final = "a target assignment was computed"
_GIVEN_UP: Final = "all moved partitions were given up"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance. ``epoch`` is the generation, or the epoch of the target assignment. ``why`` has a line for each cause.

    ``moves`` says which partitions moved and why, where the broker assigns them. ``took_ms`` is None while it goes on, or if
    it is unknown. ``kind`` is "completed", "abandoned", "emptied" or "assigned".
    """

    at_ms: int
    kind: str
    epoch: int
    cause: str
    why: tuple[str, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]
    moves: tuple[str, ...]
    members: int
    took_ms: float | None


def rebalances_of(source: Source, group: str) -> tuple[Rebalance, ...]:
    """Return the last rebalances of a group, the newest first."""
    found: list[Rebalance] = []
    for line in tuple(source.broker.lines):
        if line.fields.get("group") != group:
            continue
        if line.event in _ENDS:
            found.append(_of_members(line, _ENDS[line.event]))
        elif line.event == _ASSIGNED:
            found.append(_of_coordinator(line))
        elif line.event == _GIVEN_UP:
            _note_given_up(found, line)
    return tuple(reversed(found[-MOST_REBALANCES:]))


def _of_members(line: LogLine, kind: str) -> Rebalance:
    fields: Any = line.fields
    why = _texts(fields.get("why"))
    if "abandoned_because" in fields:
        why = (*why, f"abandoned: {fields['abandoned_because']}")
    return Rebalance(
        at_ms=line.at_ms,
        kind=kind,
        epoch=fields["generation"],
        cause=str(fields["cause"]),
        why=why,
        joined=_texts(fields["joined"]),
        left=_texts(fields["left"]),
        moves=(),
        members=fields["members"],
        took_ms=fields["took_ms"],
    )


def _of_coordinator(line: LogLine) -> Rebalance:
    fields: Any = line.fields
    return Rebalance(
        at_ms=line.at_ms,
        kind="assigned",
        epoch=fields["epoch"],
        cause=str(fields["assignor"]),
        # A share group's partitions do not move: members share them.
        why=_texts(fields.get("why")),
        joined=(),
        left=(),
        moves=_texts(fields.get("moves")),
        members=fields["members"],
        took_ms=None,
    )


def _note_given_up(found: list[Rebalance], line: LogLine) -> None:
    fields: Any = line.fields
    for number, each in enumerate(found):
        if each.kind == "assigned" and each.epoch == fields["epoch"]:
            found[number] = replace(each, took_ms=float(fields["took_ms"]))


def _texts(value: object) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
