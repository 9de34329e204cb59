"""Twins of kio's classes in which times are whole milliseconds.

kio makes a ``datetime`` of a time, and cannot read the -1 that says there is none (in DescribeTransactions, for an id that has no
transaction). A twin has integers in their place, under our names for them (``protocol.schemas``).
"""

from dataclasses import MISSING, Field, field, fields, make_dataclass
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Any, Union, get_args, get_origin

from kio.static.primitive import i32, i64

_PLAIN: dict[str, tuple[type[int], str]] = {
    "timedelta_i32": (i32, "int32"),
    "timedelta_i64": (i64, "int64"),
    "datetime_i64": (i64, "int64"),
}
_CLASS_FIELDS = ("__type__", "__version__", "__flexible__", "__api_key__", "__header_schema__")


def with_plain_times(entity: type[Any]) -> type[Any]:
    """The twin of one of kio's classes; itself where it has no times."""
    members = [_member(each) for each in fields(entity)]
    if all(name == each.name and type_ == each.type for (name, type_, _), each in zip(members, fields(entity), strict=True)):
        return entity
    namespace = {name: getattr(entity, name) for name in _CLASS_FIELDS if hasattr(entity, name)}
    return make_dataclass(entity.__name__, members, namespace=namespace, frozen=True, slots=True, kw_only=True)


def _member(original: "Field[Any]") -> tuple[str, Any, Any]:
    kafka_type = original.metadata.get("kafka_type")
    if kafka_type not in _PLAIN:
        return original.name, _twin_of(original.type), _like(original, original.metadata, original.default)
    type_, plain_type = _PLAIN[kafka_type]
    name = original.name if original.name.endswith("_ms") else f"{original.name}_ms"
    return name, type_, _like(original, {**original.metadata, "kafka_type": plain_type}, 0)


def _like(original: "Field[Any]", metadata: Any, default: Any) -> Any:
    return field(metadata=metadata) if original.default is MISSING else field(metadata=metadata, default=default)


def _twin_of(annotation: Any) -> Any:
    """The annotation with kio's classes, wherever they are in it, replaced by their twins."""
    if hasattr(annotation, "__dataclass_fields__"):
        return with_plain_times(annotation)
    origin = get_origin(annotation)
    if origin is tuple:
        return GenericAlias(tuple, (_twin_of(get_args(annotation)[0]), ...))
    if origin in (Union, UnionType):
        return reduce(or_, map(_twin_of, get_args(annotation)))
    return annotation
