"""Ids that a broker has given, and those that another one has given in their place.

The ids of an answer to a replayed request stand where those of the recorded answer stood: so each pair is learnt, and the next
requests are sent with the other broker's ids. Producer ids stand in the headers of batches, too.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final
from uuid import UUID

from odradek.protocol.record_batch import batch_crc, iter_batches

__tracebackhide__ = True

# Fields that hold an id which a broker draws, and the kind of the id. UUIDs are ids wherever they stand.
_KINDS: Final = {
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "session_id": "session",
    # Of client telemetry: it is made of the client instance's id.
    "subscription_id": "subscription",
}
_UUID: Final = "uuid"
# Where a batch has its checksum and its producer's id.
_CRC_AT, _PRODUCER_ID_AT = 17, 43
_CRC: Final = Struct(">I")
_PRODUCER_ID: Final = Struct(">q")


class Ids:
    """Pairs of ids: one to one, for each kind."""

    def __init__(self) -> None:
        self._there: dict[tuple[str, object], object] = {}
        self._here: dict[tuple[str, object], object] = {}

    def copy(self) -> Ids:
        """The pairs so far, to learn others on trial."""
        copy = Ids()
        copy._there, copy._here = dict(self._there), dict(self._here)
        return copy

    def are_one(self, kind: str, recorded: object, replayed: object) -> bool:
        """Whether the two stand for the same; if neither was seen before, they do from now on."""
        there, here = (kind, recorded), (kind, replayed)
        if there not in self._there and here not in self._here:
            self._there[there], self._here[here] = replayed, recorded
        return self._there.get(there) == replayed and self._here.get(here) == recorded

    def sign(self, kind: str, value: object, *, is_recorded: bool) -> object:
        """What two ids have in common that stand for the same; "?" for one that has not been seen."""
        return self._there.get((kind, value), "?") if is_recorded else value if (kind, value) in self._here else "?"

    def translated(self, field: str, value: Any) -> Any:
        """A recorded request, or a field of it, with the ids of the broker that it is to be sent to."""
        if hasattr(value, "_fields"):
            return type(value)(*(self.translated(name, inner) for name, inner in zip(value._fields, value, strict=True)))
        if isinstance(value, tuple | list):
            return tuple(self.translated(field, inner) for inner in value)
        if isinstance(value, bytes) and field == "records":
            return self._with_producer_ids(value)
        kind = kind_of(field, value)
        return value if kind is None else self._there.get((kind, value), value)

    def _with_producer_ids(self, records: bytes) -> bytes:
        changed = bytearray(records)
        for position, header in iter_batches(records):
            producer_id = self._there.get(("producer", header.producer_id)) if header.has_producer_id else None
            if isinstance(producer_id, int) and header.magic > 1:
                _PRODUCER_ID.pack_into(changed, position + _PRODUCER_ID_AT, producer_id)
                _CRC.pack_into(changed, position + _CRC_AT, batch_crc(bytes(changed), position, header.size_bytes))
        return bytes(changed)


def kind_of(field: str, value: object) -> str | None:
    """What kind of id a field's value is; None for a value that no broker draws."""
    if isinstance(value, UUID):
        return _UUID
    kind = _KINDS.get(field)
    if kind is None or isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        if kind == "subscription":
            return kind
        # -1 is no producer, session 0 no session; a leader that is a number is a node.
        return kind if kind != "member" and value >= (kind == "session") else None
    return kind if value != "" else None
