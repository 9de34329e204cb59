"""The base of all metadata records, and the wire types of their fields.

A field's metadata has its wire type, its tag if it is tagged, and under ``since`` the first version that has it (0 if absent).
"""

from typing import Any, ClassVar

INT8 = {"kafka_type": "int8"}
INT16 = {"kafka_type": "int16"}
UINT16 = {"kafka_type": "uint16"}
INT32 = {"kafka_type": "int32"}
INT64 = {"kafka_type": "int64"}
FLOAT64 = {"kafka_type": "float64"}
BOOL = {"kafka_type": "bool"}
STRING = {"kafka_type": "string"}
BYTES = {"kafka_type": "bytes"}
UUID_ = {"kafka_type": "uuid"}


def tagged(wire_type: dict[str, str], tag: int, since: int = 0) -> dict[str, Any]:
    """The metadata of a tagged field."""
    return {**wire_type, "tag": tag, "since": since}


def since(wire_type: dict[str, str], version: int) -> dict[str, Any]:
    """The metadata of a field that a later version added."""
    return {**wire_type, "since": version}


class MetadataRecord:
    """A record of the metadata log. ``__version__`` is the newest version, which is written; older ones are read."""

    __slots__ = ()
    __version__: ClassVar[int] = 0
    __api_key__: ClassVar[int]


class Nested:
    """A part of a metadata record."""

    __slots__ = ()
