"""The canonical messages: one class per API and struct, whatever version a client speaks.

A canonical class has the fields of the newest version, and those few that only older versions have and the broker still
honours (``_OLDER_FIELDS``). It is slotted and mutable, takes keywords, and has Kafka's default for every field, so a handler
names only what it means to say. Values are plain: ``int``, ``str``, ``bytes``, tuples or lists, ``uuid.UUID | None`` (None is
the zero id), milliseconds for durations and times.

``messages(ApiKey.METADATA)`` gives the classes of an API under their schema names (``MetadataRequest``,
``MetadataResponse``, ``MetadataResponseTopic``, ...). They are built once, on first use, from kio's field metadata.
"""

from typing import Any

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.schemas import FieldSpec, field_specs, load

# What the newest version dropped and a client of an older one may still send or wait for: class -> field -> default.
_OLDER_FIELDS: dict[ApiKey, dict[str, dict[str, object]]] = {
    ApiKey.METADATA: {
        "MetadataRequest": {"include_cluster_authorized_operations": False},
        "MetadataResponse": {"cluster_authorized_operations": -(2**31)},
    },
    ApiKey.PRODUCE: {"TopicProduceResponse": {"name": ""}},
    ApiKey.FETCH: {
        "FetchTopic": {"topic": ""},
        "ForgottenTopic": {"topic": ""},
        "FetchableTopicResponse": {"topic": ""},
    },
    ApiKey.OFFSET_COMMIT: {
        "OffsetCommitRequest": {"retention_time_ms": -1},
        "OffsetCommitRequestTopic": {"name": ""},
        "OffsetCommitResponseTopic": {"name": ""},
    },
    ApiKey.OFFSET_FETCH: {
        "OffsetFetchRequest": {"group_id": "", "topics": None},
        "OffsetFetchRequestTopics": {"name": ""},
        "OffsetFetchResponseTopics": {"name": ""},
    },
    ApiKey.FIND_COORDINATOR: {"FindCoordinatorRequest": {"key": ""}},
    ApiKey.LEAVE_GROUP: {"LeaveGroupRequest": {"member_id": ""}},
    ApiKey.DELETE_TOPICS: {"DeleteTopicsRequest": {"topic_names": ()}},
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        "AddPartitionsToTxnRequest": {
            "v3_and_below_transactional_id": "",
            "v3_and_below_producer_id": 0,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": (),
        }
    },
    ApiKey.UPDATE_FEATURES: {
        "FeatureUpdateKey": {"allow_downgrade": False},
        "UpdateFeaturesResponse": {"results": ()},
    },
}


class Messages:
    """The canonical classes of one API; ``request`` and ``response`` are the two at the top.

    The classes are attributes under their schema names. Where a request and a response use one name for two structs
    (DescribeQuorum's ``PartitionData``), the attribute is the response's; ``classes`` keeps the two apart.
    """

    def __init__(self, api_key: ApiKey) -> None:
        self.classes: dict[str, dict[str, type[Any]]] = {"request": {}, "response": {}}
        version = NEWEST_VERSION[api_key]
        older = _OLDER_FIELDS.get(api_key, {})
        self.request: type[Any] = _build(load(api_key, version, "request"), older, self.classes["request"])
        self.response: type[Any] = _build(load(api_key, version, "response"), older, self.classes["response"])

    def __getattr__(self, name: str) -> Any:
        """The class of that schema name, kept as a plain attribute from then on."""
        for classes in (self.classes["response"], self.classes["request"]):
            if name in classes:
                setattr(self, name, classes[name])
                return classes[name]
        raise AttributeError(f"no message class {name!r} here; there are {self.classes}")


def _build(entity: type[Any], older: dict[str, dict[str, object]], classes: dict[str, type[Any]]) -> type[Any]:
    """The canonical class for ``entity`` of kio's, those of its structs included, in ``classes`` by name."""
    name = entity.__name__
    if name not in classes:
        defaults: dict[str, object] = {}
        for spec in field_specs(entity):
            nested = None if spec.entity is None else _build(spec.entity, older, classes)
            defaults[spec.name] = _canonical_default(spec, nested)
        defaults.update(older.get(name, {}))
        classes[name] = make_class(name, defaults)
    return classes[name]


def _canonical_default(spec: FieldSpec, nested: type[Any] | None) -> object:
    if nested is None or spec.is_array:
        return spec.default
    # A struct in a field of its own: by default the struct with all its defaults. It is shared; nobody writes to it.
    return None if spec.default is None else nested()


def make_class(name: str, defaults: dict[str, object]) -> type[Any]:
    """A slotted class with a keyword constructor over ``defaults``, readable in a traceback."""
    parameters = ", ".join(f"{field}=_defaults[{field!r}]" for field in defaults)
    body = "".join(f"    self.{field} = {field}\n" for field in defaults) or "    pass\n"
    star = "*, " if defaults else ""
    scope: dict[str, Any] = {"_defaults": defaults}
    exec(f"def __init__(self, {star}{parameters}):\n{body}", scope)  # noqa: S102  names come from kio's schemas
    return type(
        name,
        (),
        {"__slots__": tuple(defaults), "__init__": scope["__init__"], "__repr__": _repr, "__eq__": _equal, "__hash__": None},
    )


def _repr(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def _equal(self: Any, other: Any) -> bool:
    return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


_messages: dict[ApiKey, Messages] = {}


def messages(api_key: ApiKey) -> Messages:
    """The canonical classes of an API."""
    known = _messages.get(api_key)
    if known is None:
        known = _messages[api_key] = Messages(api_key)
    return known
