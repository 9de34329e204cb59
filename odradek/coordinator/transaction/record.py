"""The records of ``__transaction_state``."""

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.coordinator_records import UnknownKey, decode_transaction_key, decode_value


def decode_transaction_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """The decoded record; None if the version of its key is unknown. Raises MalformedMessage."""
    decoded = decode_transaction_key(key)
    if isinstance(decoded, UnknownKey):
        return None
    return CoordinatorRecord(decoded, decode_value(decoded, value))
