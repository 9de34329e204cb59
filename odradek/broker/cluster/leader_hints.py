"""Adds the right leader and its address to the answer if a client asked a wrong leader (KIP-951).

A gate behind the handlers of Produce, Fetch, ShareFetch and ShareAcknowledge. If a partition's error says that its leader or
epoch has changed, the partition gets the current leader and epoch, and the response gets the leader's address. So the client need
not ask for metadata first.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.common.context import RequestContext
from odradek.controller.metadata.cluster_view import Cluster
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch, produce, share_acknowledge, share_fetch

_WRONG_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class _Fields(NamedTuple):
    """The names of a response's fields: of a topic's name (None if there is none) and partitions, of a partition's index."""

    types: Any
    response_type: type[Any]
    first_version: int
    topic: str | None = None
    partitions: str = "partitions"
    partition_index: str = "partition_index"


_FIELDS: Final[Mapping[int, _Fields]] = {
    ApiKey.PRODUCE: _Fields(produce, produce.ProduceResponse, 10, "name", "partition_responses", "index"),
    ApiKey.FETCH: _Fields(fetch, fetch.FetchResponse, 16, "topic"),
    ApiKey.SHARE_FETCH: _Fields(share_fetch, share_fetch.ShareFetchResponse, 0),
    ApiKey.SHARE_ACKNOWLEDGE: _Fields(share_acknowledge, share_acknowledge.ShareAcknowledgeResponse, 0),
}


class LeaderHints:
    """The Gate that adds leaders to responses. Loop thread only."""

    def __init__(self, image: MetadataImage, cluster: Cluster) -> None:
        self._image = image
        self._cluster = cluster

    def admit(self, context: RequestContext, request: object) -> object:  # noqa: ARG002
        """Admit every request."""
        return None

    def release(self, context: RequestContext, response: object) -> object:
        """Add the leaders to responses that refuse a partition, if their version has a field for them."""
        fields = _FIELDS.get(context.api_key)
        if fields is None or context.version < fields.first_version or not isinstance(response, fields.response_type):
            return response
        leaders: set[int] = set()
        topics = []
        for topic in response.responses:
            name = "" if fields.topic is None else getattr(topic, fields.topic)
            partitions = getattr(topic, fields.partitions)
            told = self._with_leaders(self._topic(name, topic.topic_id), partitions, fields, leaders)
            topics.append(topic._replace(**{fields.partitions: told}))
        if not leaders:
            return response
        return response._replace(responses=topics, node_endpoints=self._endpoints(context, leaders, fields.types.NodeEndpoint))

    def _topic(self, name: str, topic_id: UUID | None) -> Topic | None:
        return self._image.topics.get(name) or (None if topic_id is None else self._image.topics_by_id.get(topic_id))

    def _with_leaders(self, known: Topic | None, partitions: Sequence[Any], fields: _Fields, leaders: set[int]) -> list[Any]:
        """Return ``partitions``, with current leaders where the error is about the leader. Adds these leaders to ``leaders``."""
        told = []
        for partition in partitions:
            record = None
            if known is not None and partition.error_code in _WRONG_LEADER:
                record = known.partitions.get(getattr(partition, fields.partition_index))
            if record is None:
                told.append(partition)
            else:
                leaders.add(record.leader)
                told.append(partition._replace(current_leader=fields.types.LeaderIdAndEpoch(record.leader, record.leader_epoch)))
        return told

    def _endpoints(self, context: RequestContext, leaders: set[int], endpoint_type: type[Any]) -> list[Any]:
        """Return the addresses of the leaders that are alive and have the client's listener."""
        alive = self._cluster.nodes(context.listener_name)
        return [endpoint_type(node.node_id, node.host, node.port, node.rack) for node in alive if node.node_id in leaders]
