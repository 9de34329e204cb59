"""Decoding requests: kio reads the version that came, ``up`` makes it the canonical message.

Between versions most fields agree by name, so ``up`` is compiled: one flat function per class that copies what both have and
leaves the rest at its default. What an older version says in another shape (one coordinator key for a list of them, topic
names for topics) is put right in ``_REWRITES``, by hand, one function per API.

Produce has a reader of its own (``produce_request``), which leaves the records where they are, and so have the newer versions of
OffsetCommit (``offset_commit``), which come most often after it.
"""

from collections.abc import Callable
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.array_bounds import compile_array_check
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import FIRST_FLEXIBLE, Buffer, ProduceRequest, read_produce_request
from odradek.protocol.schemas import MILLISECOND, field_specs, load

Decoder = Callable[[Buffer, int], Any]
_decoders: dict[int, Decoder] = {}


def decode_request(api_key: ApiKey, version: int, frame: Buffer, position: int) -> Any:
    """The canonical request in ``frame``, whose header v1 ends at ``position``; raises ``MalformedMessage``, never else."""
    decoder = _decoders.get(api_key << 16 | version)
    if decoder is None:
        decoder = _decoders[api_key << 16 | version] = _make_decoder(api_key, version)
    try:
        return decoder(frame, position)
    except MalformedMessage as error:
        raise MalformedMessage(f"{api_key.name} v{version}: {error.reason}") from None
    except Exception as error:  # noqa: BLE001  whatever bytes can make a decoder raise, it is the bytes' fault
        raise MalformedMessage(f"{api_key.name} v{version}: {type(error).__name__}: {error}") from None


def _make_decoder(api_key: ApiKey, version: int) -> Decoder:
    if api_key == ApiKey.PRODUCE:
        return _make_produce_decoder(version)
    if api_key == ApiKey.OFFSET_COMMIT:
        from odradek.protocol.offset_commit import FIRST_FLEXIBLE as FIRST_FLEXIBLE_COMMIT

        if version >= FIRST_FLEXIBLE_COMMIT:
            return _make_offset_commit_decoder(version)
    from kio.serial import entity_reader

    entity = load(api_key, version, "request")
    read = entity_reader(entity)
    check_arrays = compile_array_check(entity)
    flexible = bool(entity.__flexible__)
    up = _make_up(api_key, entity)

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            # A large frame is a view of a buffer that will be written to again, and kio's byte strings would be views of it.
            frame = bytes(frame)
        if flexible:
            position = skip_tagged_fields(frame, position)
        if check_arrays is not None:
            check_arrays(frame, position)
        message, _ = read(frame, position)
        return up(message)

    return decode


def _make_produce_decoder(version: int) -> Decoder:
    flexible = version >= FIRST_FLEXIBLE

    def decode(frame: Buffer, position: int) -> ProduceRequest:
        if flexible:
            position = skip_tagged_fields(frame, position)
        return read_produce_request(frame, position, version)

    return decode


def _make_offset_commit_decoder(version: int) -> Decoder:
    from odradek.protocol.offset_commit import read_offset_commit_request

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            frame = bytes(frame)
        return read_offset_commit_request(frame, skip_tagged_fields(frame, position), version)

    return decode


def _make_up(api_key: ApiKey, entity: type[Any]) -> Callable[[Any], Any]:
    convert = _compile_up(entity, messages(api_key).classes["request"])
    rewrite = _REWRITES.get(api_key)
    if rewrite is None:
        return convert

    def up(decoded: Any) -> Any:
        request = convert(decoded)
        rewrite(request, decoded)
        return request

    return up


def _compile_up(entity: type[Any], canonical: dict[str, type[Any]]) -> Callable[[Any], Any]:
    """A function from ``entity``, a class of kio's, to the canonical class of the same name."""
    target = canonical[entity.__name__]
    scope: dict[str, Any] = {"target": target, "fail": _null_where_none_may_be}
    arguments = []
    for spec in field_specs(entity):
        if spec.name not in target.__slots__:
            continue
        value = f"o.{spec.wire_name}"
        if spec.entity is not None:
            scope[f"up_{spec.name}"] = _compile_up(spec.entity, canonical)
            converted = f"[up_{spec.name}(i) for i in {value}]" if spec.is_array else f"up_{spec.name}({value})"
            value = f"(None if {value} is None else {converted})" if spec.nullable else converted
        elif spec.name != spec.wire_name:
            scope["millisecond"] = MILLISECOND
            value = f"{value} // millisecond"
        elif spec.is_array and not spec.nullable:
            value = f"(fail({spec.name!r}) if {value} is None else {value})"
        arguments.append(f"{spec.name}={value}")
    exec(f"def up(o):\n    return target({', '.join(arguments)})\n", scope)  # noqa: S102  names come from kio's schemas
    return scope["up"]  # type: ignore[no-any-return]


def _null_where_none_may_be(name: str) -> None:
    raise MalformedMessage(f"{name} is null")


def _rewrite_metadata(request: Any, decoded: Any) -> None:
    # In version 0 no topics meant all of them; since version 1 that is null, and an empty list means none.
    if decoded.__version__ == 0 and not request.topics:
        request.topics = None


def _rewrite_find_coordinator(request: Any, decoded: Any) -> None:
    if decoded.__version__ < 4:
        request.coordinator_keys = (decoded.key,)


def _rewrite_delete_topics(request: Any, decoded: Any) -> None:
    if decoded.__version__ < 6:
        state = messages(ApiKey.DELETE_TOPICS).DeleteTopicState
        request.topics = [state(name=name) for name in decoded.topic_names]


def _rewrite_update_features(request: Any, decoded: Any) -> None:
    if decoded.__version__ < 1:
        for update, old in zip(request.feature_updates, decoded.feature_updates, strict=True):
            update.upgrade_type = 2 if old.allow_downgrade else 1


def _rewrite_list_config_resources(request: Any, decoded: Any) -> None:
    # Version 0 was ListClientMetricsResources, of which it keeps the meaning: resource type 16.
    if decoded.__version__ == 0:
        request.resource_types = (16,)


def _rewrite_offset_fetch(request: Any, decoded: Any) -> None:
    if decoded.__version__ >= 8:
        return
    if decoded.topics is None and decoded.__version__ < 2:
        _null_where_none_may_be("topics")
    if any(topic.partition_indexes is None for topic in decoded.topics or ()):
        _null_where_none_may_be("partition_indexes")
    classes = messages(ApiKey.OFFSET_FETCH).classes["request"]
    topic = classes["OffsetFetchRequestTopics"]
    topics = decoded.topics and [topic(name=each.name, partition_indexes=each.partition_indexes) for each in decoded.topics]
    request.groups = [classes["OffsetFetchRequestGroup"](group_id=decoded.group_id, topics=topics)]


def _rewrite_join_group(request: Any, decoded: Any) -> None:
    # Version 0 had one timeout for both.
    if decoded.__version__ == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms


def _rewrite_leave_group(request: Any, decoded: Any) -> None:
    if decoded.__version__ < 3:
        request.members = [messages(ApiKey.LEAVE_GROUP).MemberIdentity(member_id=decoded.member_id)]


def _rewrite_add_partitions_to_txn(request: Any, decoded: Any) -> None:
    if decoded.__version__ >= 4:
        return
    classes = messages(ApiKey.ADD_PARTITIONS_TO_TXN).classes["request"]
    topic = classes["AddPartitionsToTxnTopic"]
    if decoded.v3_and_below_topics is None or any(each.partitions is None for each in decoded.v3_and_below_topics):
        _null_where_none_may_be("topics")
    request.transactions = [
        classes["AddPartitionsToTxnTransaction"](
            transactional_id=decoded.v3_and_below_transactional_id,
            producer_id=decoded.v3_and_below_producer_id,
            producer_epoch=decoded.v3_and_below_producer_epoch,
            topics=[topic(name=each.name, partitions=each.partitions) for each in decoded.v3_and_below_topics],
        )
    ]


_REWRITES: dict[ApiKey, Callable[[Any, Any], None]] = {
    ApiKey.METADATA: _rewrite_metadata,
    ApiKey.FIND_COORDINATOR: _rewrite_find_coordinator,
    ApiKey.OFFSET_FETCH: _rewrite_offset_fetch,
    ApiKey.DELETE_TOPICS: _rewrite_delete_topics,
    ApiKey.JOIN_GROUP: _rewrite_join_group,
    ApiKey.LEAVE_GROUP: _rewrite_leave_group,
    ApiKey.ADD_PARTITIONS_TO_TXN: _rewrite_add_partitions_to_txn,
    ApiKey.UPDATE_FEATURES: _rewrite_update_features,
    ApiKey.LIST_CONFIG_RESOURCES: _rewrite_list_config_resources,
}
