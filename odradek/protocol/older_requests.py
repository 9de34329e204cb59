"""Converts requests whose older versions differ in shape from the canonical message.

The reader of such a version makes an object with that version's own fields (``older`` below). A function in this module turns the
object into the canonical request: a single coordinator key, group, member or transaction becomes a list of one, topic names
become topics.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import Layout, load, messages

_UPGRADE = 1
_SAFE_DOWNGRADE = 2
_CLIENT_METRICS = 16


class OlderShape(NamedTuple):
    """A shape that applies up to version ``last``. Structs in ``reshaped`` also keep that version's own fields."""

    last: int
    rewrite: Callable[[Any], Any]
    reshaped: frozenset[str] = frozenset()


def request_shape(api_key: ApiKey, version: int) -> tuple[Layout, Mapping[str, type[Any]], Callable[[Any], Any] | None]:
    """Return the fields of a request in that version, and the canonical classes for its reader.

    The third item converts the reader's result; None if its fields correspond to the canonical request's by name.
    """
    layout = load(api_key, version, "request")
    canonical = messages(api_key).classes["request"]
    shape = next((shape for shape in _SHAPES.get(api_key, ()) if version <= shape.last), None)
    if shape is None:
        return layout, canonical, None
    own = {layout.name, *shape.reshaped}
    return layout, {name: of for name, of in canonical.items() if name not in own}, shape.rewrite


def _canonical(api_key: ApiKey, older: Any, **fields: Any) -> Any:
    """Make the canonical request with these fields, and copy the other fields from ``older``."""
    return _canonical_struct(messages(api_key).request, older, **fields)


def _metadata(older: Any) -> Any:
    # In version 0 an empty list meant all topics. Since version 1 null means all, and an empty list means none.
    return _canonical(ApiKey.METADATA, older, topics=older.topics or None)


def _find_coordinator(older: Any) -> Any:
    return _canonical(ApiKey.FIND_COORDINATOR, older, coordinator_keys=(older.key,))


def _delete_topics(older: Any) -> Any:
    state = messages(ApiKey.DELETE_TOPICS).DeleteTopicState
    return _canonical(ApiKey.DELETE_TOPICS, older, topics=tuple(state(name=name) for name in older.topic_names))


def _update_features(older: Any) -> Any:
    update = messages(ApiKey.UPDATE_FEATURES).FeatureUpdateKey
    return _canonical(
        ApiKey.UPDATE_FEATURES,
        older,
        feature_updates=tuple(
            update(
                feature=each.feature,
                max_version_level=each.max_version_level,
                upgrade_type=_SAFE_DOWNGRADE if each.allow_downgrade else _UPGRADE,
            )
            for each in older.feature_updates
        ),
    )


def _list_config_resources(older: Any) -> Any:
    # Version 0 was ListClientMetricsResources, and keeps that meaning.
    return _canonical(ApiKey.LIST_CONFIG_RESOURCES, older, resource_types=(_CLIENT_METRICS,))


def _first_offset_fetch(older: Any) -> Any:
    if older.topics is None:
        raise MalformedMessage("topics is null")
    return _offset_fetch(older)


def _offset_fetch(older: Any) -> Any:
    m = messages(ApiKey.OFFSET_FETCH)
    topic = m.OffsetFetchRequestTopics
    topics = older.topics and tuple(topic(name=each.name, partition_indexes=each.partition_indexes) for each in older.topics)
    return _canonical(ApiKey.OFFSET_FETCH, older, groups=(m.OffsetFetchRequestGroup(group_id=older.group_id, topics=topics),))


def _join_group(older: Any) -> Any:
    # Version 0 had one timeout for both.
    return _canonical(ApiKey.JOIN_GROUP, older, rebalance_timeout_ms=older.session_timeout_ms)


def _leave_group(older: Any) -> Any:
    member = messages(ApiKey.LEAVE_GROUP).MemberIdentity
    return _canonical(ApiKey.LEAVE_GROUP, older, members=(member(member_id=older.member_id),))


def _add_partitions_to_txn(older: Any) -> Any:
    m = messages(ApiKey.ADD_PARTITIONS_TO_TXN)
    transaction = m.AddPartitionsToTxnTransaction(
        transactional_id=older.v3_and_below_transactional_id,
        producer_id=older.v3_and_below_producer_id,
        producer_epoch=older.v3_and_below_producer_epoch,
        topics=older.v3_and_below_topics,
    )
    return m.AddPartitionsToTxnRequest(transactions=(transaction,))


def _alter_partition(older: Any) -> Any:
    # Before version 3, the in-sync replicas were ids. A broker epoch of -1 is not checked.
    classes = messages(ApiKey.ALTER_PARTITION).classes["request"]
    topics = []
    for topic in older.topics:
        partitions = [
            _canonical_struct(
                classes["PartitionData"],
                each,
                new_isr_with_epochs=tuple(classes["BrokerState"](broker_id=broker_id) for broker_id in each.new_isr),
            )
            for each in topic.partitions
        ]
        topics.append(topic._replace(partitions=tuple(partitions)))
    return _canonical(ApiKey.ALTER_PARTITION, older, topics=tuple(topics))


def _canonical_struct(kind: type[Any], older: Any, **fields: Any) -> Any:
    """Make a struct of a request with these fields, and copy the other fields from ``older``."""
    return kind(**{**{name: getattr(older, name) for name in kind._fields if hasattr(older, name)}, **fields})


# A shape applies up to its last version. From the next version on, the following line applies, if there is one.
_SHAPES: dict[ApiKey, tuple[OlderShape, ...]] = {
    ApiKey.METADATA: (OlderShape(0, _metadata),),
    ApiKey.FIND_COORDINATOR: (OlderShape(3, _find_coordinator),),
    ApiKey.OFFSET_FETCH: (OlderShape(1, _first_offset_fetch), OlderShape(7, _offset_fetch)),
    ApiKey.DELETE_TOPICS: (OlderShape(5, _delete_topics),),
    ApiKey.JOIN_GROUP: (OlderShape(0, _join_group),),
    ApiKey.LEAVE_GROUP: (OlderShape(2, _leave_group),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (OlderShape(3, _add_partitions_to_txn),),
    ApiKey.UPDATE_FEATURES: (OlderShape(0, _update_features, frozenset({"FeatureUpdateKey"})),),
    ApiKey.LIST_CONFIG_RESOURCES: (OlderShape(0, _list_config_resources),),
    ApiKey.ALTER_PARTITION: (OlderShape(2, _alter_partition, frozenset({"PartitionData"})),),
}
