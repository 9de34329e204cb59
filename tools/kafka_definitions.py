"""Kafka's own definitions of its messages, as its jars carry them: JSON with comments.

Only names, types, versions and defaults are read; what the definitions say about a field is not.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from benchmarks.kafka_jars import VERSION, cached
from odradek.protocol.api_keys import ApiKey

# Strings stay, comments go.
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
_NEWEST = 32767

Definitions = dict[tuple[ApiKey, str], "Message"]


@dataclass(frozen=True, slots=True)
class Versions:
    """All from ``first`` to ``last``."""

    first: int
    last: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Kafka's form of it: ``3+``, ``3-5`` or ``3``."""
        first, _, last = text.partition("-")
        if first.endswith("+"):
            return cls(int(first[:-1]), _NEWEST)
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def within(self, other: "Versions") -> "Versions | None":
        """The versions common to both."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Versions(first, last) if first <= last else None

    def told(self, whole: "Versions | None" = None) -> str:
        """The form of a table (odradek.protocol.messages); empty if it is all of ``whole``."""
        if self == whole:
            return ""
        if whole and self.last == whole.last:
            return f"{self.first}+"
        if whole and self.first == whole.first:
            return f"-{self.last}"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name in snake case, ``default`` as JSON, None if there is none; ``fields`` are those of a struct."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: str | None
    fields: tuple[Self, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A request, a response or a record."""

    name: str
    versions: Versions
    flexible: Versions | None
    fields: tuple[Field, ...]

    def up_to(self, version: int) -> "Message":
        """The message as it was with that version as its newest."""
        versions = Versions(self.versions.first, version)
        return replace(
            self,
            versions=versions,
            flexible=self.flexible and self.flexible.within(versions),
            fields=tuple(_within(self.fields, versions)),
        )


def kafka_definitions() -> Definitions:
    """The request and the response of each API that odradek knows. Raises MissingTool where Kafka cannot be fetched."""
    found = [each for each in _definitions("kafka-clients") if each.get("apiKey") in set(ApiKey)]
    return {(ApiKey(each["apiKey"]), each["type"]): _message(each) for each in found if each["validVersions"] != "none"}


def coordinator_records() -> dict[int, tuple[Message, Message]]:
    """The key and the value of each kind of record that Kafka's group coordinator writes, by the version of the key."""
    return _kinds("kafka-group-coordinator")


def transaction_value() -> Message:
    """The state of a transactional id, as Kafka's transaction coordinator writes it."""
    [found] = [each for each in _definitions("kafka-transaction-coordinator") if each["name"] == "TransactionLogValue"]
    message = _message(found)
    return message.up_to(message.versions.last)


def share_state_records() -> dict[int, tuple[Message, Message]]:
    """The key and the value of each kind of record that Kafka's share coordinator writes, by the version of the key."""
    return _kinds("kafka-share-coordinator")


def metadata_records() -> dict[int, Message]:
    """Each kind of record of Kafka's metadata log."""
    found = {each["apiKey"]: _message(each) for each in _definitions("kafka-metadata")}
    return {kind: message.up_to(message.versions.last) for kind, message in sorted(found.items())}


def _kinds(library: str) -> dict[int, tuple[Message, Message]]:
    records = [each for each in _definitions(library) if "apiKey" in each]
    found = {(each["apiKey"], each["type"]): _message(each) for each in records}
    found = {place: message.up_to(message.versions.last) for place, message in found.items()}
    kinds = sorted({kind for kind, _ in found})
    return {kind: (found[kind, "coordinator-key"], found[kind, "coordinator-value"]) for kind in kinds}


def _definitions(library: str) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(cached(VERSION) / f"{library}-{VERSION}.jar") as jar:
        for name in jar.namelist():
            if name.startswith("common/") and name.endswith(".json"):
                yield _parsed(jar.read(name).decode())


def _parsed(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(_STRING_OR_COMMENT.sub(lambda found: found[1] or "", text))
    return parsed


def _message(definition: dict[str, Any]) -> Message:
    shared = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}
    return Message(
        name=definition["name"],
        versions=Versions.read(definition["validVersions"]),
        flexible=_versions_or_none(definition["flexibleVersions"]),
        fields=tuple(_field(each, shared) for each in definition["fields"]),
    )


def _field(definition: dict[str, Any], shared: dict[str, Any]) -> Field:
    of = definition["type"].removeprefix("[]")
    return Field(
        name=_snake(definition["name"]),
        type=of,
        is_array=definition["type"].startswith("[]"),
        versions=Versions.read(definition.get("versions") or definition["taggedVersions"]),
        nullable=_versions_or_none(definition.get("nullableVersions", "none")),
        tag=definition.get("tag"),
        default=_default(definition.get("default"), of),
        fields=tuple(_field(each, shared) for each in definition.get("fields") or shared.get(of, ())),
    )


def _versions_or_none(text: str) -> Versions | None:
    return None if text == "none" else Versions.read(text)


def _snake(name: str) -> str:
    """A name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _default(default: str | bool | None, of: str) -> str | None:
    """A default as JSON; None for the one that all fields of its type have."""
    if default is None or default == "null":
        return None if default is None else "null"
    if of == "string":
        return json.dumps(default)
    if of == "bool":
        return str(default).lower()
    return str(default) if of == "float64" else str(int(str(default), 0))


def _within(fields: tuple[Field, ...], versions: Versions) -> Iterator[Field]:
    for field in fields:
        own = field.versions.within(versions)
        if own is not None:
            nullable = field.nullable and field.nullable.within(own)
            yield replace(field, versions=own, nullable=nullable, fields=tuple(_within(field.fields, own)))
