"""What a request's body may have, said once: it is checked by this, and described by it in OpenAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "object": (dict,),
    "array": (list,),
}


class BadRequest(Exception):
    """A request that says what cannot be done; the message says why, and what is allowed."""


class Field(NamedTuple):
    """One field of a body. ``type`` is JSON Schema's, ``choices`` are all values allowed where there are any."""

    type: str
    about: str
    is_required: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> Json:
        """As OpenAPI has it."""
        return {"type": self.type, "description": self.about, **({"enum": list(self.choices)} if self.choices else {})}


def check(fields: Mapping[str, Field], body: Mapping[str, object], what: str) -> None:
    """Raises BadRequest unless ``body`` has all fields that it must, and each is as ``fields`` says."""
    for name, value in body.items():
        field = fields.get(name)
        if field is None:
            raise BadRequest(f"{what} has no {name!r}; it may have {', '.join(fields) or 'nothing'}")
        if not isinstance(value, _TYPES[field.type]) or isinstance(value, bool):
            raise BadRequest(f"{name} is of type {field.type}, and not {value!r}")
        if field.choices and value not in field.choices:
            raise BadRequest(f"{name} is one of {', '.join(field.choices)}, and not {value!r}")
    for name, field in fields.items():
        if field.is_required and name not in body:
            raise BadRequest(f"{what} must have {name!r}: {field.about}")
