"""A member that speaks the consumer protocol, as the Java client does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tests.campaigns.simulation.groups.modern_member import ModernMember

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World


class Subscription(NamedTuple):
    """Topics by name, or those that a regular expression matches."""

    names: frozenset[str]
    pattern: str = ""

    def __str__(self) -> str:
        return self.pattern or ", ".join(sorted(self.names))


class ConsumerMember(ModernMember):
    """One process. Before version 1 the coordinator makes the member's id."""

    api = ApiKey.CONSUMER_GROUP_HEARTBEAT

    def __init__(
        self,
        world: World,
        group: GroupPlan,
        client_id: str,
        instance_id: str | None,
        subscription: Subscription,
        *,
        version: int,
        rebalance_timeout_ms: int,
        assignor: str | None,
    ) -> None:
        member_id = "" if version == 0 else f"{client_id}#{world.new_token()}"
        super().__init__(world, group, client_id, instance_id, member_id=member_id, version=version)
        self.subscription = subscription
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._assignor = assignor

    @property
    def partitions(self) -> frozenset[tuple[UUID, int]]:
        """Its partitions."""
        return self.held

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe to other topics from now on."""
        self.subscription = subscription if self._version > 0 else Subscription(subscription.names)
        self._tells_all = True

    def _request(self, held: frozenset[Any], *, tells_all: bool) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance_id if tells_all or self.instance_id is not None else None,
            rebalance_timeout_ms=self._rebalance_timeout_ms if tells_all else -1,
            subscribed_topic_names=sorted(self.subscription.names) if tells_all else None,
            subscribed_topic_regex=self.subscription.pattern if tells_all and self._version > 0 else None,
            server_assignor=self._assignor if tells_all else None,
            topic_partitions=_listed(held) if tells_all or held != self._reported else None,
        )

    def _farewell(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            topic_partitions=None,
        )

    def _told(self, response: Any) -> frozenset[tuple[UUID, int]] | None:
        if response.assignment is None:
            return None
        return frozenset((each.topic_id, index) for each in response.assignment.topic_partitions for index in each.partitions)


def _listed(partitions: Iterable[tuple[UUID, int]]) -> list[RequestTopicPartitions]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return [RequestTopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]
