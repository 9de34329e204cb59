"""Fields of requests by path: what there is in a version, and a request with one of them changed."""

from collections.abc import Iterator, Mapping
from typing import Any

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import FieldSpec
from tests.campaigns.wire_differential import wire
from tests.campaigns.wire_differential.script import Ref

Path = tuple[str, ...]


def versions() -> Iterator[tuple[ApiKey, int]]:
    """Each API and version served."""
    for key, served in SERVED.items():
        for version in range(served.min_version, served.max_version + 1):
            yield key, version


def fields_of(api_key: ApiKey, version: int) -> Iterator[tuple[Path, FieldSpec]]:
    """Every field of a request, at every depth."""
    yield from _walk(wire.request_fields(api_key, version), ())


def _walk(specs: tuple[FieldSpec, ...], above: Path) -> Iterator[tuple[Path, FieldSpec]]:
    for spec in specs:
        yield (*above, spec.name), spec
        if spec.layout is not None:
            yield from _walk(spec.layout.fields, (*above, spec.name))


def replaced(fields: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """``fields`` with another value at ``path``, in the first element of each array on the way, which is made if need be."""
    name, *rest = path
    if not rest:
        return {**fields, name: value}
    inner = fields.get(name)
    if isinstance(inner, Mapping):
        return {**fields, name: replaced(inner, tuple(rest), value)}
    first, *others = inner or [{}]
    return {**fields, name: [replaced(first, tuple(rest), value), *others]}


def value_at(fields: Mapping[str, Any], path: Path) -> Any:
    """What stands there, in the first element of each array on the way; None if nothing does."""
    found: Any = fields
    for name in path:
        if isinstance(found, list | tuple):
            found = found[0] if found else {}
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def mapped(fields: Any, names: Mapping[str, str], refs: Mapping[str, Any]) -> Any:
    """``fields`` with other names of the script's own, and other values in the place of references."""
    if isinstance(fields, str):
        return names.get(fields, fields)
    if isinstance(fields, Mapping):
        return {name: mapped(value, names, refs) for name, value in fields.items()}
    if isinstance(fields, list | tuple):
        return [mapped(item, names, refs) for item in fields]
    return refs.get(fields.name, fields) if isinstance(fields, Ref) else fields
