"""Decoding requests: the reader of the version that came makes the canonical message (``readers``).

Between versions most fields agree by name; those that a version lacks have their defaults. What an older version says in another
shape (one coordinator key for a list of them, topic names for topics) is put right in ``_REWRITES``, by hand.

Produce has a reader of its own (``produce_request``), which leaves the records where they are, and so have the newer versions of
what comes most often after it: OffsetCommit (``offset_commit``), TxnOffsetCommit and EndTxn (``transaction_messages``).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import FIRST_FLEXIBLE, Buffer, ProduceRequest, read_produce_request
from odradek.protocol.readers import compile_reader
from odradek.protocol.schemas import load

Decoder = Callable[[Buffer, int], Any]


@cache
def request_decoder(api_key: ApiKey, version: int) -> Decoder:
    """``decode(frame, position)``: the canonical request in a frame whose header v1 ends at ``position``.

    ``decode`` raises ``MalformedMessage``, never else.
    """
    read = _make_decoder(api_key, version)

    def decode(frame: Buffer, position: int) -> Any:
        try:
            return read(frame, position)
        except MalformedMessage as error:
            raise MalformedMessage(f"{api_key.name} v{version}: {error.reason}") from None
        except Exception as error:  # noqa: BLE001  whatever bytes can make a decoder raise, it is the bytes' fault
            raise MalformedMessage(f"{api_key.name} v{version}: {type(error).__name__}: {error}") from None

    return decode


def _make_decoder(api_key: ApiKey, version: int) -> Decoder:
    if api_key == ApiKey.PRODUCE:
        return _make_produce_decoder(version)
    if api_key == ApiKey.OFFSET_COMMIT:
        from odradek.protocol.offset_commit import FIRST_FLEXIBLE as FIRST_FLEXIBLE_COMMIT

        if version >= FIRST_FLEXIBLE_COMMIT:
            return _make_offset_commit_decoder(version)
    if api_key in {ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN}:
        from odradek.protocol import transaction_messages

        if version >= transaction_messages.FIRST_FLEXIBLE:
            if api_key == ApiKey.END_TXN:
                return _make_flexible_decoder(transaction_messages.read_end_txn_request)
            return _make_flexible_decoder(transaction_messages.read_txn_offset_commit_request)
    return _make_general_decoder(api_key, version)


def _make_general_decoder(api_key: ApiKey, version: int) -> Decoder:
    entity = load(api_key, version, "request")
    read = compile_reader(entity, messages(api_key).classes["request"])
    flexible = bool(entity.__flexible__)
    rewrite = next((rewrite for last, rewrite in _REWRITES.get(api_key, ()) if version <= last), None)

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            # A large frame is a view of a buffer that will be written to again.
            frame = bytes(frame)
        if flexible:
            position = skip_tagged_fields(frame, position)
        request, _ = read(frame, position)
        if rewrite is not None:
            rewrite(request)
        return request

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

    return _make_flexible_decoder(lambda frame, position: read_offset_commit_request(frame, position, version))


def _make_flexible_decoder(read: Callable[[bytes, int], Any]) -> Decoder:
    """``read`` behind the header's tags, for a frame that may be a view."""

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            frame = bytes(frame)
        return read(frame, skip_tagged_fields(frame, position))

    return decode


def _rewrite_metadata(request: Any) -> None:
    # In version 0 no topics meant all of them; since version 1 that is null, and an empty list means none.
    if not request.topics:
        request.topics = None


def _rewrite_find_coordinator(request: Any) -> None:
    request.coordinator_keys = (request.key,)


def _rewrite_delete_topics(request: Any) -> None:
    state = messages(ApiKey.DELETE_TOPICS).DeleteTopicState
    request.topics = [state(name=name) for name in request.topic_names]


def _rewrite_update_features(request: Any) -> None:
    for update in request.feature_updates:
        update.upgrade_type = 2 if update.allow_downgrade else 1


def _rewrite_list_config_resources(request: Any) -> None:
    # Version 0 was ListClientMetricsResources, of which it keeps the meaning: resource type 16.
    request.resource_types = (16,)


def _rewrite_first_offset_fetch(request: Any) -> None:
    if request.topics is None:
        raise MalformedMessage("topics is null")
    _rewrite_offset_fetch(request)


def _rewrite_offset_fetch(request: Any) -> None:
    classes = messages(ApiKey.OFFSET_FETCH).classes["request"]
    topic = classes["OffsetFetchRequestTopics"]
    topics = request.topics and [topic(name=each.name, partition_indexes=each.partition_indexes) for each in request.topics]
    request.groups = [classes["OffsetFetchRequestGroup"](group_id=request.group_id, topics=topics)]


def _rewrite_join_group(request: Any) -> None:
    # Version 0 had one timeout for both.
    request.rebalance_timeout_ms = request.session_timeout_ms


def _rewrite_leave_group(request: Any) -> None:
    request.members = [messages(ApiKey.LEAVE_GROUP).MemberIdentity(member_id=request.member_id)]


def _rewrite_add_partitions_to_txn(request: Any) -> None:
    transaction = messages(ApiKey.ADD_PARTITIONS_TO_TXN).classes["request"]["AddPartitionsToTxnTransaction"]
    request.transactions = [
        transaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


# Up to a version, which may not be the last for which something is to be done: then the next line goes on from there.
_REWRITES: dict[ApiKey, tuple[tuple[int, Callable[[Any], None]], ...]] = {
    ApiKey.METADATA: ((0, _rewrite_metadata),),
    ApiKey.FIND_COORDINATOR: ((3, _rewrite_find_coordinator),),
    ApiKey.OFFSET_FETCH: ((1, _rewrite_first_offset_fetch), (7, _rewrite_offset_fetch)),
    ApiKey.DELETE_TOPICS: ((5, _rewrite_delete_topics),),
    ApiKey.JOIN_GROUP: ((0, _rewrite_join_group),),
    ApiKey.LEAVE_GROUP: ((2, _rewrite_leave_group),),
    ApiKey.ADD_PARTITIONS_TO_TXN: ((3, _rewrite_add_partitions_to_txn),),
    ApiKey.UPDATE_FEATURES: ((0, _rewrite_update_features),),
    ApiKey.LIST_CONFIG_RESOURCES: ((0, _rewrite_list_config_resources),),
}
