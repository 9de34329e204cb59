"""A comparison of two brokers' answers to one request. Ids, times and a node's own values may differ.

A difference has a path: ``topics.partitions.error_code``, and ``topics[]`` for an element that only one answer has. In lists
of the broker's own the path names the element: ``api_keys(22).max_version``. If error codes differ, the other fields of that
struct are not compared. The order of arrays and the wording of messages are not compared either.

Another broker draws other ids (``IdPairs``). When answers are compared, ids at the same place form pairs. Later requests are sent
with the other broker's ids. Producer ids also stand in the headers of batches.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from odradek.protocol.record_batch import HEADER_SIZE, batch_crc, iter_batches
from odradek.testing.timeline.messages import OmittedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Fields with an id drawn by a broker, and the kind of the id. A UUID is an id in any field.
_KINDS: Final = {
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "session_id": "session",
    # Client telemetry makes it from the client instance's id.
    "subscription_id": "subscription",
}
_UUID: Final = "uuid"
# Positions of the checksum and the producer id in a batch.
_CRC_AT, _PRODUCER_ID_AT = 17, 43
_CRC: Final = Struct(">I")
_PRODUCER_ID: Final = Struct(">q")


class IdPairs:
    """Pairs of ids, one to one within each kind."""

    def __init__(self) -> None:
        self._replayed_ids: dict[tuple[str, object], object] = {}
        self._recorded_ids: dict[tuple[str, object], object] = {}

    def copy(self) -> IdPairs:
        """Return a copy of the pairs, for a comparison on trial."""
        copy = IdPairs()
        copy._replayed_ids, copy._recorded_ids = dict(self._replayed_ids), dict(self._recorded_ids)
        return copy

    def pair(self, kind: str, recorded: object, replayed: object) -> bool:
        """Return whether the two ids form a pair. If both are new, make them one."""
        there, here = (kind, recorded), (kind, replayed)
        if there not in self._replayed_ids and here not in self._recorded_ids:
            self._replayed_ids[there], self._recorded_ids[here] = replayed, recorded
        return self._replayed_ids.get(there) == replayed and self._recorded_ids.get(here) == recorded

    def sign(self, kind: str, value: object, *, is_recorded: bool) -> object:
        """Return a value that is the same for both ids of a pair; "?" for an unknown id."""
        return (
            self._replayed_ids.get((kind, value), "?") if is_recorded else value if (kind, value) in self._recorded_ids else "?"
        )

    def translated(self, field: str, value: Any) -> Any:
        """Return a recorded request, or a field of it, with the ids of the broker that it goes to."""
        if hasattr(value, "_fields"):
            return type(value)(*(self.translated(name, inner) for name, inner in zip(value._fields, value, strict=True)))
        if isinstance(value, tuple | list):
            return tuple(self.translated(field, inner) for inner in value)
        if isinstance(value, bytes) and field == "records":
            return self._with_producer_ids(value)
        kind = kind_of(field, value)
        return value if kind is None else self._replayed_ids.get((kind, value), value)

    def _with_producer_ids(self, records: bytes) -> bytes:
        changed = bytearray(records)
        for position, header in iter_batches(records):
            producer_id = self._replayed_ids.get(("producer", header.producer_id)) if header.has_producer_id else None
            if isinstance(producer_id, int) and header.magic > 1:
                _PRODUCER_ID.pack_into(changed, position + _PRODUCER_ID_AT, producer_id)
                _CRC.pack_into(changed, position + _CRC_AT, batch_crc(bytes(changed), position, header.size_bytes))
        return bytes(changed)


def kind_of(field: str, value: object) -> str | None:
    """Return the kind of id in a field; None for a value that no broker draws."""
    if isinstance(value, UUID):
        return _UUID
    kind = _KINDS.get(field)
    if kind is None or isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        if kind == "subscription":
            return kind
        # Producer id -1 and session 0 mean none; a numeric leader is a node.
        return kind if kind != "member" and value >= (kind == "session") else None
    return kind if value != "" else None


__tracebackhide__ = True

ABSENT: Final = "-"
FieldDifference = tuple[str, object, object]
_OF_THE_NODE = frozenset(
    {
        *("cluster_id", "host", "port", "throttle_time_ms", "log_dir", "total_bytes", "usable_bytes", "partition_size"),
        # It grows with the metadata log.
        "finalized_features_epoch",
    }
)
_FREE_TEXT_FIELDS = frozenset({"error_message", "documentation"})
_NAMES = (
    *("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name", "key", "api_key", "partition_index"),
    *("partition", "index", "path", "node_id", "broker_id", "feature", "resource_type", "replica_id", "protocol_name"),
)
_LISTS_OF_THE_BROKER = frozenset({"configs", "api_keys"})
_DAY_MS: Final = 86_400_000


class ResponseComparison:
    """Compares recorded answers with another broker's. ``days_ms`` are the times of the recording and of the replay."""

    def __init__(self, ids: IdPairs, days_ms: tuple[int, int]) -> None:
        self._ids = ids
        self._days_ms = days_ms

    def differences(self, recorded: Any, replayed: Any, path: str = "") -> Iterator[FieldDifference]:
        """Yield (path, recorded, replayed) of every difference."""
        if hasattr(recorded, "_fields") and hasattr(replayed, "_fields"):
            yield from self._struct_differences(recorded, replayed, path)
        elif isinstance(recorded, tuple | list) and isinstance(replayed, tuple | list):
            yield from self._list_differences(recorded, replayed, path)
        elif not self._are_equivalent(path.rpartition(".")[2], recorded, replayed):
            yield path, _shown(recorded), _shown(replayed)

    def _struct_differences(self, recorded: Any, replayed: Any, path: str) -> Iterator[FieldDifference]:
        names = recorded._fields
        codes = [name for name in names if name.endswith("error_code") and getattr(recorded, name) != getattr(replayed, name)]
        for name in codes or names:
            yield from self.differences(getattr(recorded, name), getattr(replayed, name), f"{path}.{name}" if path else name)

    def _list_differences(self, recorded: Sequence[Any], replayed: Sequence[Any], path: str) -> Iterator[FieldDifference]:
        there, here = self._by_identity(recorded, is_recorded=True), self._by_identity(replayed, is_recorded=False)
        is_list_of_broker = path.rpartition(".")[2] in _LISTS_OF_THE_BROKER
        for identity in there | here:
            if identity not in here:
                yield f"{path}[]", identity, ABSENT
            elif identity not in there:
                yield f"{path}[]", ABSENT, identity
            else:
                yield from self.differences(there[identity], here[identity], f"{path}({identity})" if is_list_of_broker else path)

    def _by_identity(self, items: Sequence[Any], *, is_recorded: bool) -> dict[str, Any]:
        """Return the elements by identity, with a suffix for duplicates."""
        found: dict[str, Any] = {}
        for item in items:
            identity = self._identity(item, is_recorded=is_recorded)
            while identity in found:
                identity += "~"
            found[identity] = item
        return found

    def _identity(self, item: Any, *, is_recorded: bool) -> str:
        if not hasattr(item, "_fields"):
            return str(_shown(item))
        told = []
        for name, value in zip(item._fields, item, strict=True):
            kind = kind_of(name, value)
            if kind is not None:
                told.append(str(self._ids.sign(kind, value, is_recorded=is_recorded)))
            elif name in _NAMES and value not in (None, ""):
                told.append(str(value))
        return " ".join(told)

    def _are_equivalent(self, field: str, recorded: Any, replayed: Any) -> bool:
        if field in _OF_THE_NODE or recorded == replayed or isinstance(recorded, OmittedRecords):
            return True
        if field in _FREE_TEXT_FIELDS:
            return (recorded is None) == (replayed is None)
        if field == "records":
            return self._batches(recorded, is_recorded=True) == self._batches(replayed, is_recorded=False)
        kind = kind_of(field, recorded)
        if kind is not None and kind == kind_of(field, replayed):
            return self._ids.pair(kind, recorded, replayed)
        return self._is_time(recorded) and self._is_time(replayed)

    def _batches(self, data: Any, *, is_recorded: bool) -> list[object]:
        """Return the broker-independent header fields of the batches, and a digest of their records."""
        whole = b"" if data is None else bytes(data)
        found: list[object] = []
        for position, header in iter_batches(whole):
            records = whole[position + HEADER_SIZE : position + header.size_bytes]
            told = header._replace(
                crc=0,
                producer_id=-1,
                base_timestamp=0 if self._is_time(header.base_timestamp) else header.base_timestamp,
                max_timestamp=0 if self._is_time(header.max_timestamp) else header.max_timestamp,
            )
            producer = self._ids.sign("producer", header.producer_id, is_recorded=is_recorded)
            found.append(
                (told, producer if header.has_producer_id else -1, None if header.is_control else sha256(records).digest())
            )
        return found

    def _is_time(self, value: object) -> bool:
        return isinstance(value, int) and any(abs(value - day_ms) < _DAY_MS for day_ms in self._days_ms)


def _shown(value: object) -> object:
    if isinstance(value, bytes | memoryview):
        return f"{len(value)} bytes {sha256(value).hexdigest()[:8]}"
    return str(value) if isinstance(value, UUID) or hasattr(value, "_fields") else value
