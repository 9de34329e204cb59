"""Adds the right leader and its address to the answer if a client asked a wrong leader (KIP-951).

A gate behind the handlers of Produce, Fetch, ShareFetch and ShareAcknowledge. If a partition's error says that its leader or
epoch has changed, the partition gets the current leader and epoch, and the response gets the leader's address. So the client need
not ask for metadata first.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from odradek.common.context import RequestContext
from odradek.controller.metadata.cluster_view import Cluster
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch, produce, share_acknowledge, share_fetch

_FIRST_PRODUCE: Final = 10
_FIRST_FETCH: Final = 16
_WRONG_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class LeaderHints:
    """The Gate that adds leaders to responses. Loop thread only."""

    def __init__(self, image: MetadataImage, cluster: Cluster) -> None:
        self._image = image
        self._cluster = cluster

    def admit(self, context: RequestContext, request: object) -> object:  # noqa: ARG002
        """Admit every request."""
        return None

    def release(self, context: RequestContext, response: object) -> object:
        """Add the leaders to Produce and Fetch responses that refuse a partition, if their version has a field for them."""
        if context.api_key == ApiKey.PRODUCE and context.version >= _FIRST_PRODUCE:
            if isinstance(response, produce.ProduceResponse):
                return self._produce(context, response)
        elif context.api_key == ApiKey.FETCH and context.version >= _FIRST_FETCH and isinstance(response, fetch.FetchResponse):
            return self._fetch(context, response)
        elif context.api_key == ApiKey.SHARE_FETCH and isinstance(response, share_fetch.ShareFetchResponse):
            return self._share(context, response, share_fetch)
        elif context.api_key == ApiKey.SHARE_ACKNOWLEDGE and isinstance(response, share_acknowledge.ShareAcknowledgeResponse):
            return self._share(context, response, share_acknowledge)
        return response

    def _produce(self, context: RequestContext, response: produce.ProduceResponse) -> produce.ProduceResponse:
        leaders: set[int] = set()
        topics = []
        for topic in response.responses:
            known = self._topic(topic.name, topic.topic_id)
            told = self._with_leaders(known, topic.partition_responses, "index", produce.LeaderIdAndEpoch, leaders)
            topics.append(topic._replace(partition_responses=told))
        if not leaders:
            return response
        return response._replace(responses=topics, node_endpoints=self._endpoints(context, leaders, produce.NodeEndpoint))

    def _fetch(self, context: RequestContext, response: fetch.FetchResponse) -> fetch.FetchResponse:
        leaders: set[int] = set()
        topics = []
        for topic in response.responses:
            known = self._topic(topic.topic, topic.topic_id)
            told = self._with_leaders(known, topic.partitions, "partition_index", fetch.LeaderIdAndEpoch, leaders)
            topics.append(topic._replace(partitions=told))
        if not leaders:
            return response
        return response._replace(responses=topics, node_endpoints=self._endpoints(context, leaders, fetch.NodeEndpoint))

    def _share(self, context: RequestContext, response: Any, types: Any) -> Any:  # noqa: ANN401  two APIs with equal fields
        leaders: set[int] = set()
        topics = []
        for topic in response.responses:
            known = self._topic("", topic.topic_id)
            told = self._with_leaders(known, topic.partitions, "partition_index", types.LeaderIdAndEpoch, leaders)
            topics.append(topic._replace(partitions=told))
        if not leaders:
            return response
        return response._replace(responses=topics, node_endpoints=self._endpoints(context, leaders, types.NodeEndpoint))

    def _topic(self, name: str, topic_id: UUID | None) -> Topic | None:
        return self._image.topics.get(name) or (None if topic_id is None else self._image.topics_by_id.get(topic_id))

    def _with_leaders(
        self, known: Topic | None, partitions: Sequence[Any], index_field: str, leader_type: type[Any], leaders: set[int]
    ) -> list[Any]:
        """Return ``partitions``, with current leaders where the error is about the leader. Adds these leaders to ``leaders``."""
        told = []
        for partition in partitions:
            record = None
            if known is not None and partition.error_code in _WRONG_LEADER:
                record = known.partitions.get(getattr(partition, index_field))
            if record is None:
                told.append(partition)
            else:
                leaders.add(record.leader)
                told.append(partition._replace(current_leader=leader_type(record.leader, record.leader_epoch)))
        return told

    def _endpoints(self, context: RequestContext, leaders: set[int], endpoint_type: type[Any]) -> list[Any]:
        """Return the addresses of the leaders that are alive and have the client's listener."""
        alive = self._cluster.nodes(context.listener_name)
        return [endpoint_type(node.node_id, node.host, node.port, node.rack) for node in alive if node.node_id in leaders]
