"""JSON schemas of types: TypedDicts, lists, dicts of text keys, and plain values, each perhaps null.

An answer may get more fields in a later version, so its schema allows others.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Final, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, Any]

_PLAIN: Final[dict[object, Schema]] = {
    str: {"type": "string"},
    # Times in milliseconds and offsets do not fit into 32 bits, which generated clients use without a format.
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}


class Schemas:
    """The schemas of types. ``components`` has one for each TypedDict, by name."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type; of a TypedDict, a reference to its component. Raises TypeError for other types."""
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if is_typeddict(kind):
            return self._component(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin is list:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1]) or True}
        if origin is UnionType:
            each = [self.of(argument) for argument in arguments]
            if all(argument in _PLAIN for argument in arguments):
                formats = [{"format": schema["format"]} for schema in each if "format" in schema]
                return {"type": [schema["type"] for schema in each], **(formats[0] if formats else {})}
            return {"anyOf": each}
        raise TypeError(f"there is no schema for {kind!r}")

    def _component(self, kind: Any) -> Schema:
        if kind.__name__ not in self.components:
            component: Schema = {"type": "object", "description": " ".join((kind.__doc__ or "").split())}
            # Entered first: a type may refer to itself.
            self.components[kind.__name__] = component
            hints = get_type_hints(kind, include_extras=True)
            component["properties"] = {name: self.of(hint) for name, hint in hints.items()}
            component["required"] = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
