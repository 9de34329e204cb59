"""Records for people: markers, the coordinators' records, the cluster's metadata, and all others as text or base64."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any, Final
from uuid import UUID

from odradek.protocol import metadata_records
from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.coordinator_records import (
    CoordinatorKey,
    UnknownKey,
    decode_key,
    decode_share_state_key,
    decode_transaction_key,
    decode_value,
)
from odradek.protocol.coordinator_records.newer_groups import decode_newer
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.quorum_records import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    control_type,
)
from odradek.protocol.records import Record
from odradek.protocol.texts import encode_base64, utf8_or_none, uuid_text

GROUPS: Final = "groups"
TRANSACTIONS: Final = "transactions"
SHARES: Final = "shares"
METADATA: Final = "metadata"
PLAIN: Final = "plain"

_BY_TOPIC: Final = {
    "__consumer_offsets": GROUPS,
    "__transaction_state": TRANSACTIONS,
    "__share_group_state": SHARES,
    "__cluster_metadata": METADATA,
}
_CONTROL_TYPES: Final = {
    ABORT: "ABORT",
    COMMIT: "COMMIT",
    LEADER_CHANGE: "LEADER_CHANGE",
    SNAPSHOT_HEADER: "SNAPSHOT_HEADER",
    SNAPSHOT_FOOTER: "SNAPSHOT_FOOTER",
    KRAFT_VERSION: "KRAFT_VERSION",
    KRAFT_VOTERS: "KRAFT_VOTERS",
}


def decoder_of(directory: str) -> str:
    """Return the decoder for the records in a partition's directory, by its name."""
    return _BY_TOPIC.get(directory.rpartition("-")[0], PLAIN)


class RecordDecoder:
    """Turns a record into a dict that JSON can hold, with ``decoder``: groups, transactions, shares, metadata or plain."""

    def __init__(self, decoder: str = PLAIN) -> None:
        self._content = _DECODERS[decoder]

    def __call__(self, record: Record, *, is_control: bool) -> dict[str, Any]:
        """Return the record. One that cannot be decoded is shown as plain, with the reason."""
        found: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
        try:
            found |= _control(record) if is_control else self._content(record)
        except MalformedMessage as error:
            found |= {**_plain(record), "undecoded": error.reason}
        if record.headers:
            found["headers"] = [[name, jsonable(value)] for name, value in record.headers]
        return found


def jsonable(value: object) -> Any:  # noqa: ANN401  any JSON
    """Return a value as JSON can hold it: bytes as text or {"base64": ...}, ids as Kafka's tools print them."""
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        text = utf8_or_none(data)
        return text if text is not None and text.isprintable() else {"base64": encode_base64(data)}
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return jsonable(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: jsonable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(each) for key, each in value.items()}
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, str):
        return [jsonable(each) for each in value]
    return value


def _control(record: Record) -> dict[str, Any]:
    kind = control_type(record)
    found = {"control": _CONTROL_TYPES.get(kind, kind)}
    if kind in (ABORT, COMMIT):
        found["coordinator_epoch"] = read_control_record(record)[1]
    return found


def _plain(record: Record) -> dict[str, Any]:
    return {"key": jsonable(record.key), "value": jsonable(record.value)}


def _group(record: Record) -> dict[str, Any]:
    key = decode_key(record.key or b"")
    if isinstance(key, UnknownKey):
        newer = decode_newer(record.key or b"", record.value)
        return {"type": newer.kind, "key": jsonable(newer.key), "value": jsonable(newer.value)}
    return {"type": _type_of(key), "key": jsonable(key), "value": jsonable(decode_value(key, record.value))}


def _transaction(record: Record) -> dict[str, Any]:
    return _known(record, decode_transaction_key(record.key or b""))


def _share_state(record: Record) -> dict[str, Any]:
    return _known(record, decode_share_state_key(record.key or b""))


def _known(record: Record, key: CoordinatorKey | UnknownKey) -> dict[str, Any]:
    if isinstance(key, UnknownKey):
        raise MalformedMessage(f"a key of version {key.version}")
    return {"type": _type_of(key), "key": jsonable(key), "value": jsonable(decode_value(key, record.value))}


def _metadata(record: Record) -> dict[str, Any]:
    found = metadata_records.decode(record.value or b"")
    return {"type": type(found).__name__, "value": jsonable(found)}


def _type_of(key: object) -> str:
    return type(key).__name__.removesuffix("Key")


_DECODERS: Final[dict[str, Callable[[Record], dict[str, Any]]]] = {
    GROUPS: _group,
    TRANSACTIONS: _transaction,
    SHARES: _share_state,
    METADATA: _metadata,
    PLAIN: _plain,
}
DECODERS: Final = tuple(_DECODERS)
