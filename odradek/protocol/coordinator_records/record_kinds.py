"""The codec of several kinds of records of ``__consumer_offsets``, from their tables of fields (``tables``).

A key is an int16, the kind, and strings with an int16 length. A value is an int16 0, compact fields and tagged fields. Keys and
values are named tuples; a key's strings are its fields.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from odradek.protocol.coordinator_records.fields import ValueCodec, ensure_end, read_int16, read_nullable_string, required
from odradek.protocol.coordinator_records.tables import VALUES

_INT16: Final = Struct(">h")


class RecordKinds:
    """Kinds of records. ``keys`` has the class of each key by its version.

    ``values`` has, by the same version, the classes of a value and its structs by Kafka's names. The value's class comes first.
    """

    def __init__(self, keys: Mapping[int, type[Any]], values: Mapping[int, Mapping[str, type[Any]]]) -> None:
        self.keys = keys
        self._versions = {key_class: version for version, key_class in keys.items()}
        # By the classes of the key and of the value.
        self._codecs: dict[type[Any], ValueCodec] = {}
        for version, classes in values.items():
            codec = ValueCodec(VALUES[version], classes)
            self._codecs[next(iter(classes.values()))] = self._codecs[keys[version]] = codec

    def encode_key(self, key: tuple[str, ...]) -> bytes:
        """Encode the key. Raises struct.error for a name of more than 32,767 bytes."""
        chunks = [_INT16.pack(self._versions[type(key)])]
        for text in key:
            raw = text.encode()
            chunks += (_INT16.pack(len(raw)), raw)
        return b"".join(chunks)

    def decode_key(self, data: bytes) -> Any:  # noqa: ANN401  one of the classes of keys
        """Decode the key in ``data``, whose version is one of these kinds. Raises MalformedMessage."""
        version, position = read_int16(data, 0)
        key_class = self.keys[version]
        names = []
        for _ in key_class._fields:
            text, position = read_nullable_string(data, position)
            names.append(required(text))
        ensure_end(data, position)
        return key_class(*names)

    def encode_value(self, value: NamedTuple) -> bytes:
        """Encode the value. Raises struct.error for a number that does not fit its field."""
        return self._codecs[type(value)].encode(value)

    def decode_value(self, key: tuple[str, ...], data: bytes) -> Any:  # noqa: ANN401  an instance of the value's class
        """Decode the value of a record with this ``key``. Raises MalformedMessage."""
        return self._codecs[type(key)].decode(data)
