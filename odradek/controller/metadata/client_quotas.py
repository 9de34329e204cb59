"""Client quotas in the metadata: the values set on entities, and the one that applies to a client (KIP-546).

An entity names a user, a client id, both, or an IP address; a name of None is the default entity of its type. If several match a
client, the first one in this order applies:

    user and client id    (u, c), (u, default), then (u)
    default user          (default, c), (default, default), then (default)
    client id             (c), then (default)

Names are stored as clients send them: Kafka sanitizes them only in its metrics' tags.
Sources: ``ClientQuotasImage`` and the ``DefaultQuotaCallback`` of ``ClientQuotaManager``, Apache Kafka 4.4.
"""

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple, TypeAlias, TypeVar

from odradek.protocol.metadata_records.security import ClientQuotaRecord
from odradek.protocol.metadata_records.security import QuotaEntity as RecordEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

K = TypeVar("K")
# The (user, client id) that an entity names. None is the default of a type, "" a type that is left out.
_Named: TypeAlias = tuple[str | None, str | None]
_DEFAULT: Final = None
_UNSPECIFIED: Final = ""


class QuotaEntity(NamedTuple):
    """The entity of a quota: (type, name) pairs, at most one per type, sorted by type. A name of None is the default."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> "QuotaEntity":
        """Return the entity with these names by type: USER, CLIENT_ID, IP."""
        return cls(tuple(sorted(names.items())))

    @property
    def names(self) -> dict[str, str | None]:
        """Return the names by type."""
        return dict(self.parts)

    def __str__(self) -> str:
        """Return the entity as Kafka's messages show it."""
        named = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in self.parts)
        return f"ClientQuotaEntity(entries={{{named}}})"


class Limit(NamedTuple):
    """A quota that applies to a client, and the (user, client id) whose sensor it limits. "": all of that type share it.

    The default entities give each user, or each client, a sensor of its own.
    """

    value: float
    user: str
    client_id: str


class ClientQuotas:
    """Quotas by entity and key. Only ``replay`` and ``become`` change them; each change raises ``version``."""

    __slots__ = ("_ips", "_limits", "_values", "version")

    def __init__(self) -> None:
        self.version = 0
        self._values: dict[QuotaEntity, dict[str, float]] = {}
        # By key and names. Keys without values are removed.
        self._limits: dict[str, dict[_Named, float]] = {}
        # Connection rates by normal address or host name; None is the default.
        self._ips: dict[str | None, float] = {}

    def __iter__(self) -> Iterator[QuotaEntity]:
        """Iterate over the entities that have values."""
        return iter(self._values)

    def values(self, entity: QuotaEntity) -> Mapping[str, float]:
        """Return the values of an entity by key; empty if none are set."""
        return self._values.get(entity, {})

    def is_empty(self, key: str) -> bool:
        """Return whether no user and no client id has a quota ``key``. HOT."""
        return key not in self._limits

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the quota ``key`` that applies to a client, or None.

        A client without an id is limited by the quotas of its user only, as in Kafka.
        """
        limits = self._limits.get(key)
        if limits is None:
            return None
        for named in _precedence(user, client_id):
            value = limits.get(named)
            if value is not None:
                named_user, named_client = named
                return Limit(
                    value,
                    _UNSPECIFIED if named_user == _UNSPECIFIED else user,
                    _UNSPECIFIED if named_client == _UNSPECIFIED else client_id,
                )
        return None

    @property
    def connection_rates(self) -> Mapping[str | None, float]:
        """Return connections per second by IP address (``normal_address``) or host name; None is the default."""
        return self._ips

    def replay(self, record: "ClientQuotaRecord") -> None:
        """Set or remove the quota of ``record``."""
        self.version += 1
        entity = QuotaEntity.of({part.entity_type: part.entity_name for part in record.entity})
        values = self._values.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self._values[entity]
        self._index(entity, record.key, values.get(record.key))

    def become(self, other: "ClientQuotas") -> None:
        """Take over the content of ``other``, which must not be used any more."""
        self.version += 1
        self._values, self._limits, self._ips = other._values, other._limits, other._ips  # noqa: SLF001  the same class

    def records(self) -> "Iterator[ClientQuotaRecord]":
        """Yield the quotas as records of a snapshot."""
        for entity, values in self._values.items():
            for key, value in values.items():
                yield quota_record(entity, key, value)

    def _index(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        names = entity.names
        if IP in names:
            if key == CONNECTION_CREATION_RATE:
                name = names[IP]
                _put(self._ips, name if name is None else normal_address(name), value)
        elif USER in names or CLIENT_ID in names:
            limits = self._limits.setdefault(key, {})
            _put(limits, (names.get(USER, _UNSPECIFIED), names.get(CLIENT_ID, _UNSPECIFIED)), value)
            if not limits:
                del self._limits[key]


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> "ClientQuotaRecord":
    """Return the record that sets a quota, or removes it if ``value`` is None. The parts are in Kafka's order."""
    parts = tuple(RecordEntity(entity_type=kind, entity_name=name) for kind, name in entity.parts)
    return ClientQuotaRecord(entity=parts, key=key, value=0.0 if value is None else value, remove=value is None)


def normal_address(ip: str) -> str:
    """Return an IP address in its comparable form: no brackets, IPv4 if possible. A host name is returned as it is."""
    try:
        address = ip_address(ip.removeprefix("[").removesuffix("]"))
    except ValueError:
        return ip
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _precedence(user: str, client_id: str) -> Iterator[_Named]:
    for each in (user, _DEFAULT) if user else ():
        if client_id:
            yield each, client_id
            yield each, _DEFAULT
        yield each, _UNSPECIFIED
    if client_id:
        yield _UNSPECIFIED, client_id
        yield _UNSPECIFIED, _DEFAULT


def _put(values: dict[K, float], key: K, value: float | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
