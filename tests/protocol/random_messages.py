"""Random messages of kio's classes, from a seed: what the codec tests and the fuzzers start from."""

import datetime as dt
import random
import uuid
from dataclasses import fields
from typing import Any

from kio.schema.errors import ErrorCode

from tests.kio_schemas import FieldSpec, field_specs

_RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
_TEXT = "abcXYZ019._-éß漢"


def random_message(entity: type[Any], rng: random.Random, depth: int = 0) -> Any:
    """An instance of ``entity`` with every field drawn at random, nulls and defaults among them."""
    specs = {spec.wire_name: spec for spec in field_specs(entity)}
    values = {}
    for field in fields(entity):
        spec = specs[field.name]
        if spec.tag is not None and rng.random() < 0.4:
            continue
        values[field.name] = _value(spec, rng, depth)
    return entity(**{**_required(entity, specs), **values})


def _required(entity: type[Any], specs: dict[str, FieldSpec]) -> dict[str, Any]:
    """Tagged structs without a default of kio's own still want a value."""
    from kio.serial._implicit_defaults import get_tagged_field_default

    return {field.name: get_tagged_field_default(field) for field in fields(entity) if specs[field.name].tag is not None}


def _value(spec: FieldSpec, rng: random.Random, depth: int) -> Any:
    nullable = spec.nullable and spec.tag is None
    if nullable and rng.random() < 0.25:
        return None
    if spec.is_array:
        return tuple(_item(spec, rng, depth) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    return _item(spec, rng, depth)


def _item(spec: FieldSpec, rng: random.Random, depth: int) -> Any:
    kind = spec.kafka_type
    if kind is None:
        assert spec.entity is not None
        return random_message(spec.entity, rng, depth + 1)
    if kind in _RANGES:
        bits = rng.choice((3, _RANGES[kind] - 1))
        return rng.randrange(-(1 << bits), 1 << bits)
    if kind in _UNSIGNED:
        return rng.randrange(1 << _UNSIGNED[kind])
    if kind == "string":
        return "".join(rng.choices(_TEXT, k=rng.choice((0, 1, 5, 130))))
    if kind in {"bytes", "records"}:
        return rng.randbytes(rng.choice((0, 1, 40, 200)))
    return _special(kind, rng)


def _special(kind: str, rng: random.Random) -> Any:
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "uuid":
        return rng.choice((None, uuid.UUID(int=rng.getrandbits(128) | 1)))
    if kind == "error_code":
        return rng.choice(list(ErrorCode))
    if kind == "float64":
        return rng.choice((0.0, 1.5, -2.25, 1e300))
    if kind == "datetime_i64":
        return dt.datetime.fromtimestamp(rng.randrange(1, 2**32), tz=dt.UTC)
    assert kind in {"timedelta_i32", "timedelta_i64"}, kind
    return dt.timedelta(milliseconds=rng.randrange(-5, 2**31 - 1))
