"""Answers in canonical form: equal where two brokers have said the same.

Replaced by symbols are ids (numbered within an answer by the order of first appearance), times of today, and what belongs to a
node: its port, cluster id, directories and sizes on disk. Of documentation and of most APIs' error messages only the presence
stays. The script's own names lose their run. Elements about other scripts' topics, groups and transactional ids go, and arrays
are sorted.
"""

import hashlib
import json
import re
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from odradek.protocol.record_batch import HEADER

NAME_PREFIX = "wd-"
# One symbol each, since two brokers differ in them for no reason of the protocol.
_OF_THE_NODE = {
    "cluster_id": "cluster",
    "port": "port",
    "throttle_time_ms": 0,
    "log_dir": "directory",
    "total_bytes": "bytes",
    "usable_bytes": "bytes",
    "partition_size": "bytes",
}
# How long the metadata log has become is its own affair.
_OF_THE_METADATA_LOG = {
    "DESCRIBE_QUORUM": frozenset({"leader_epoch", "high_watermark", "log_end_offset"}),
    "API_VERSIONS": frozenset({"finalized_features_epoch"}),
}
# Messages that are Kafka's to the letter.
_WITH_MESSAGES = frozenset({"ALTER_CLIENT_QUOTAS", "DESCRIBE_CLIENT_QUOTAS"})
# Name and least value of ids that a broker draws.
_DRAWN_IDS = {"producer_id": ("pid", 0), "session_id": ("session", 1)}
_SHORT_BYTES = 16
_DAY_MS = 86_400_000
# Of a consumer group's member whose client has none: an UUID in base64, and one in hexadecimal digits, which is not the same.
_SHORT_MEMBER_ID = re.compile(r"^[0-9A-Za-z_-]{22}$")
_LONG_MEMBER_ID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_MEMBER_ID = re.compile(r"^(.*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_NAMED_BY = ("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name", "group")


@dataclass(frozen=True, slots=True)
class _Symbol:
    """An id before it has its number."""

    kind: str
    value: object


class Canonical:
    """Makes the answers to one run of one script canonical; ``own`` is what the script's own names begin with.

    Ids are numbered over all of the script's answers: an id that a broker gives twice has one number. With ``answers_shift`` each
    answer has its own numbers, and the offset of what was produced is not compared: what one broker alone took moves the rest.
    """

    def __init__(self, own: str, *, answers_shift: bool = False) -> None:
        self._own = own
        self._answers_shift = answers_shift
        self._masked: frozenset[str] = frozenset()
        self._compares_messages = False
        self._numbers: dict[_Symbol, int] = {}
        self._counts: dict[str, int] = {}

    def answer(self, api: str, value: Any) -> Any:
        """The canonical form: dictionaries, lists and JSON's scalars."""
        self._masked = _OF_THE_METADATA_LOG.get(api, frozenset())
        self._compares_messages = api in _WITH_MESSAGES
        if self._answers_shift:
            self._numbers, self._counts = {}, {}
        if self._answers_shift and api == "PRODUCE":
            self._masked = frozenset({"base_offset"})
        if api == "GET_TELEMETRY_SUBSCRIPTIONS" and _is_drawn(value):
            self._masked = frozenset({"subscription_id"})
        return self._numbered(self._value("", value))

    def _value(self, field: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            kept = [self._value(field, item) for item in value if not self._is_foreign(item)]
            return sorted(kept, key=_sort_key)
        return self._scalar(field, value)

    def _is_foreign(self, item: Any) -> bool:
        names = [item.get(name) for name in _NAMED_BY] if isinstance(item, dict) else [item]
        if isinstance(item, dict) and isinstance(item.get("entity"), list):
            names += [part.get("entity_name") for part in item["entity"]]
        return any(isinstance(name, str) and name.startswith(NAME_PREFIX) and not name.startswith(self._own) for name in names)

    def _scalar(self, field: str, value: Any) -> Any:
        if field in _OF_THE_NODE and not isinstance(value, UUID):
            return value if value in {None, "", -1, 0} else _OF_THE_NODE[field]
        if field in self._masked and value != -1:
            return "offset"
        if field in {"error_message", "documentation"}:
            if self._compares_messages and isinstance(value, str):
                return value.replace(self._own, "@")
            return None if value is None else "text"
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            if abs(value - time.time() * 1000) < _DAY_MS:
                return "time"
            kind, least = _DRAWN_IDS.get(field, ("", 0))
            return _Symbol(kind, value) if kind and value >= least else value
        if isinstance(value, UUID):
            return _Symbol("uuid", value) if value.int else None
        if isinstance(value, bytes | memoryview):
            return self._bytes(field, bytes(value))
        return self._text(field, value) if isinstance(value, str) else value

    def _text(self, field: str, text: str) -> Any:
        if field == "member_id" and (_SHORT_MEMBER_ID.match(text) or _LONG_MEMBER_ID.match(text)):
            return _Symbol("member" if _SHORT_MEMBER_ID.match(text) else "long member", text)
        if text.startswith(self._own):
            return "@" + text[len(self._own) :]
        if text.startswith(NAME_PREFIX):
            return "a name of another script"
        found = _MEMBER_ID.match(text)
        return _Symbol(f"member {found[1]}", text) if found else text

    def _bytes(self, field: str, data: bytes) -> Any:
        if field == "records":
            return batches(data)
        return data.hex() if len(data) <= _SHORT_BYTES else f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:8]}"

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._numbered(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._numbered(item) for item in value]
        if not isinstance(value, _Symbol):
            return value
        if value not in self._numbers:
            self._counts[value.kind] = self._counts.get(value.kind, 0) + 1
            self._numbers[value] = self._counts[value.kind]
        return f"#{value.kind} {self._numbers[value]}"


def _is_drawn(subscribed: Any) -> bool:
    """Whether the broker has drawn the client instance's id, which the subscription's id is made of."""
    found = subscribed.get("client_instance_id") if isinstance(subscribed, dict) else None
    return isinstance(found, UUID) and bool(found.int >> 64)


def _sort_key(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=lambda symbol: symbol.kind)


def batches(data: bytes) -> list[Any]:
    """What each batch's header says that is the same on every broker, and a digest of its records, if those are not times."""
    found: list[Any] = []
    position = 0
    while position + HEADER.size <= len(data):
        header = HEADER.unpack_from(data, position)
        base_offset, size, _, magic, _, attributes, last_delta, _, max_ms, pid, epoch, sequence, count = header
        end = position + 12 + size
        is_control = bool(attributes & 0x20)
        records = "marker" if is_control else hashlib.sha256(data[position + HEADER.size : end]).hexdigest()[:8]
        found.append(
            {
                "base_offset": base_offset,
                "magic": magic,
                "attributes": attributes,
                "last_offset_delta": last_delta,
                "max_timestamp": "time" if is_control else max_ms,
                "producer_id": pid if pid < 0 else "#pid",
                "producer_epoch": epoch,
                "base_sequence": sequence,
                "record_count": count,
                "records": records if end <= len(data) else "cut",
            }
        )
        position = end
    return found
