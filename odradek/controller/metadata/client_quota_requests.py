"""Handles requests about client quotas: alters them, and describes those that match a filter (KIP-546, KIP-612).

As in Kafka, a value to remove may have any key. If a request names an entity twice, the first alteration holds, although the
answer is an error. Sources: ``ClientQuotaControlManager`` and ``ClientQuotasImage`` of Apache Kafka 4.4.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Final, NamedTuple

from odradek.controller.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotas,
    QuotaEntity,
    quota_record,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import alter_client_quotas as altering
from odradek.protocol.message_types import describe_client_quotas as describing
from odradek.protocol.metadata_records import MetadataRecord

# MAX_RECORDS_PER_USER_OP.
_MOST_RECORDS: Final = 10_000
# The number of entities handled without a pause: a millisecond or two.
_TOGETHER: Final = 100


class _Whole(NamedTuple):
    """A type of values without fractions."""

    article: str
    name: str
    highest: int


_INT: Final = _Whole("an", "INT", (1 << 31) - 1)
_LONG: Final = _Whole("a", "LONG", (1 << 63) - 1)
# The types of values by key; None if fractions are allowed.
_OF_CLIENTS: Final[Mapping[str, _Whole | None]] = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: Final[Mapping[str, _Whole | None]] = {CONNECTION_CREATION_RATE: _INT}

_TYPES: Final = (USER, CLIENT_ID, IP)
_LEAST_FRACTION: Final = 1e-6
# The match types of a filter's component: the exact name, the default entity, any entity that names the type.
_MATCH_NAMES: Final = {0: "MATCH_TYPE_EXACT", 1: "MATCH_TYPE_DEFAULT", 2: "MATCH_TYPE_SPECIFIED"}
_EXACT: Final = 0
_SPECIFIED: Final = 2


def alter(
    quotas: ClientQuotas, entries: Sequence[altering.RequestEntryData], unknown_hosts: Collection[str]
) -> Generator[None, None, tuple[list[altering.EntryData], list[MetadataRecord]]]:
    """Return the result of each entity, and the records, in slices. POLICY_VIOLATION for more records than Kafka allows.

    ``unknown_hosts`` has the names of ip entities that are neither addresses nor known hosts.
    """
    results: dict[QuotaEntity, KafkaError | None] = {}
    records: list[MetadataRecord] = []
    for place, entry in enumerate(entries, 1):
        if place % _TOGETHER == 0:
            yield None
        entity = _entity(entry.entity)
        ops = {op.key: None if op.remove else op.value for op in entry.ops}
        if entity in results or len(ops) < len(entry.ops):
            results[entity] = KafkaError(ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {entity}")
            continue
        try:
            records += _records(quotas, entity, ops, unknown_hosts)
        except KafkaError as error:
            results[entity] = error
        else:
            results[entity] = None
    if len(records) > _MOST_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return [_result(entity, error) for entity, error in results.items()], records


def host_names(entries: Sequence[altering.RequestEntryData]) -> set[str]:
    """Return the names of ip entities in a request."""
    return {part.entity_name for entry in entries for part in entry.entity if part.entity_type == IP and part.entity_name}


class QuotaFilter:
    """The filter of a DescribeClientQuotas. Raises KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION."""

    def __init__(self, request: describing.DescribeClientQuotasRequest) -> None:
        self._exact, self._typed = _filter(request.components)
        self._count = len(self._exact) + len(self._typed) if request.strict else None

    def describe(self, quotas: ClientQuotas, entity: QuotaEntity) -> describing.EntryData | None:
        """Return an entity with its values, if it has any and the filter selects it; else None."""
        values = quotas.values(entity)
        is_selected = self._count is None or len(entity.parts) == self._count
        if not values or not is_selected or not _matches(entity, self._exact, self._typed):
            return None
        return describing.EntryData(
            entity=[describing.EntityData(*part) for part in entity.parts],
            values=[describing.ValueData(*value) for value in values.items()],
        )


def _entity(parts: Sequence[altering.RequestEntityData]) -> QuotaEntity:
    return QuotaEntity.of({part.entity_type: part.entity_name for part in parts})


def _result(entity: QuotaEntity, error: KafkaError | None) -> altering.EntryData:
    parts = [altering.EntityData(*part) for part in entity.parts]
    if error is None:
        return altering.EntryData(entity=parts)
    return altering.EntryData(error.code, error.reason, parts)


def _records(
    quotas: ClientQuotas, entity: QuotaEntity, ops: Mapping[str, float | None], unknown_hosts: Collection[str]
) -> Iterator[MetadataRecord]:
    """Yield the records of an entity's changes. Raises KafkaError: INVALID_REQUEST for an invalid entity, key or value."""
    problem = _entity_problem(entity, unknown_hosts)
    keys = _OF_ADDRESSES if IP in entity.names else _OF_CLIENTS
    for key, value in ops.items():
        if problem is None and value is not None:
            problem = _value_problem(keys, key, value)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    current = quotas.values(entity)
    for key, value in ops.items():
        known = current.get(key)
        if known != value and not (value is not None and isnan(value) and known is not None and isnan(known)):
            yield quota_record(entity, key, value)


def _entity_problem(entity: QuotaEntity, unknown_hosts: Collection[str]) -> str | None:
    """Return why such an entity is invalid, or None."""
    if not entity.parts:
        return "Invalid empty client quota entity"
    for kind, name in entity.parts:
        if kind not in _TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name is not None and not name:
            return f"Empty {kind} not supported"
    names = entity.names
    if IP not in names:
        return None
    if len(names) > 1:
        # Kafka's message lacks the same space.
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    return f"{names[IP]} is not a valid IP or resolvable host." if names[IP] in unknown_hosts else None


def _value_problem(keys: Mapping[str, _Whole | None], key: str, value: float) -> str | None:
    """Return why a quota cannot have this value, or None."""
    if key not in keys:
        return f"Invalid configuration key {key}"
    if not isfinite(value):
        return f"Quota {key} must be a finite number"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    whole = keys[key]
    if whole is None:
        return None
    # As in Java, the highest number of the type is compared as a float.
    if value > float(whole.highest):
        return f"Proposed value for {key} is too large for {whole.article} {whole.name}."
    return f"{key} cannot be a fractional value." if value % 1 > _LEAST_FRACTION else None


def _filter(components: Sequence[describing.ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Return the names that entities must have, by type, and the types that they must name."""
    exact: dict[str, str | None] = {}
    typed: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in exact or kind in typed:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        problem = _match_problem(component)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
        if component.match_type == _SPECIFIED:
            typed.add(kind)
        else:
            exact[kind] = component.match
    named = exact.keys() | typed
    if IP in named and len(named) > 1:
        reason = "Invalid entity filter component combination. IP filter component should not be used with "
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{reason}user or clientId filter component.")
    return exact, typed


def _match_problem(component: describing.ComponentData) -> str | None:
    """Return why a component cannot match anything, or None."""
    name = _MATCH_NAMES.get(component.match_type)
    if name is None:
        return f"Unknown match type {component.match_type}"
    if component.match_type == _EXACT:
        return f"Request specified {name}, but set match string to null." if component.match is None else None
    return None if component.match is None else f"Request specified {name}, but also specified a match string."


def _matches(entity: QuotaEntity, exact: Mapping[str, str | None], typed: Collection[str]) -> bool:
    names = entity.names
    return all(kind in names and names[kind] == name for kind, name in exact.items()) and all(kind in names for kind in typed)
