"""kio's messages beside ours: the versions to try, kio's bytes, and the fields of both in one form."""

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from tests import kio_schemas
from tests.kio_schemas import field_specs, load, plain

every_api = pytest.mark.parametrize("api_key", ApiKey, ids=lambda api_key: api_key.name)
every_served_api = pytest.mark.parametrize("api_key", SERVED, ids=lambda api_key: api_key.name)


def known_versions(api_key: ApiKey, kind: str, *, above: int = -1) -> list[int]:
    """The lowest version above ``above`` that kio knows, the highest, and each with another layout than the one before."""
    return _changed(api_key, kind, (version for version in kio_schemas.versions(api_key) if version > above))


def served_versions(api_key: ApiKey, kind: str) -> list[int]:
    """The lowest version that a broker serves, the highest, and each with another layout than the one before."""
    return _changed(api_key, kind, range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1))


def _changed(api_key: ApiKey, kind: str, versions: Iterable[int]) -> list[int]:
    layouts = {version: _layout(load(api_key, version, kind)) for version in sorted(versions)}
    return [version for version in layouts if version == max(layouts) or layouts[version] != layouts.get(version - 1)]


def _layout(entity: type[Any]) -> object:
    """All of a class that its codec depends on."""
    return entity.__flexible__, [
        (replace(spec, entity=None), spec.entity and _layout(spec.entity)) for spec in field_specs(entity)
    ]


def encoded(message: Any) -> bytes:
    """A message of kio's as kio writes it."""
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def assert_written(entity: type[Any], written: bytes, expected: bytes) -> None:
    """Compare bytes; if they differ, tell the fields that do, each with what was written and what is expected."""
    if written != expected:
        ours, kios = (fields_of(entity_reader(entity)(body, 0)[0]) for body in (written, expected))
        different = {name: (ours[name], kios[name]) for name in kios if ours[name] != kios[name]}
        pytest.fail(f"{different or (written, expected)}")


def rebuilt(kios: Any, make: Callable[[str, dict[str, Any]], Any]) -> Any:
    """A message of kio's, each struct being what ``make`` makes of its name and its fields in canonical form."""

    def value_of(spec: Any, value: Any) -> Any:
        if value is None:
            return -1 if spec.kafka_type == "datetime_i64" else () if spec.is_array and not spec.nullable else None
        convert = plain if spec.entity is None else lambda each: rebuilt(each, make)
        return [convert(each) for each in value] if spec.is_array else convert(value)

    specs = field_specs(type(kios))
    return make(type(kios).__name__, {spec.name: value_of(spec, getattr(kios, spec.wire_name)) for spec in specs})


def fields_of(kios: Any) -> Any:
    """A message of kio's as the fields that ours shall have."""
    return rebuilt(kios, lambda _, fields: fields)


def canonical(kios: Any, classes: dict[str, type[Any]]) -> Any:
    """A message of kio's as one of ours. Fields that ours lacks are dropped; a struct without a class is its fields."""

    def make(name: str, fields: dict[str, Any]) -> Any:
        known = classes.get(name)
        return known(**{name: value for name, value in fields.items() if name in known._fields}) if known else fields

    return rebuilt(kios, make)


def same_fields(ours: Any, expected: dict[str, Any]) -> dict[str, Any]:
    """The fields ``expected`` has, with our message's values. A field that ours lacks is not read, and taken as expected."""
    return {name: same_value(getattr(ours, name), value) if name in ours._fields else value for name, value in expected.items()}


def same_value(ours: Any, expected: Any) -> Any:
    """A value of ours in the form of ``expected``."""
    if isinstance(expected, dict):
        return same_fields(ours, expected)
    if isinstance(expected, list):
        assert len(ours) == len(expected)
        return [same_value(mine, other) for mine, other in zip(ours, expected, strict=True)]
    return ours
