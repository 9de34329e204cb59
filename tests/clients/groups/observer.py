"""A look at groups from outside: over the wire, and in what the broker logs of each rebalance."""

from __future__ import annotations

import json
import time
from itertools import cycle
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from odradek.protocol.api_keys import ApiKey
from tests.clients.groups.journal import WAIT_TIMEOUT_S
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.broker_process import BrokerProcess

POLL_INTERVAL_S = 0.02
REBALANCED = {"rebalance completed", "rebalance left the group empty"}
RETRIABLE = {14, 15, 16}


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> None:
    """Wait for something that nobody tells us, asking now and then."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(POLL_INTERVAL_S)


class Observer:
    """Asks a broker, and the cluster's others where that is not the coordinator, each time by a connection of its own."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    def describe(self, group_id: str) -> Any:
        """DescribeGroups' answer, once the group's coordinator is loaded."""
        return self._settled(
            ApiKey.DESCRIBE_GROUPS, 5, lambda response: response.groups[0], {"groups": [group_id]}, f"{group_id} described"
        )

    def describe_consumer_group(self, group_id: str) -> Any:
        """ConsumerGroupDescribe's answer, once the group's coordinator is loaded."""
        asked = {"group_ids": [group_id]}
        return self._settled(
            ApiKey.CONSUMER_GROUP_DESCRIBE, 1, lambda response: response.groups[0], asked, f"{group_id} described"
        )

    def state(self, group_id: str) -> str:
        return str(self.describe(group_id).group_state)

    def member_ids(self, group_id: str) -> set[str]:
        return {member.member_id for member in self.describe(group_id).members}

    def wait_until_state(self, group_id: str, state: str) -> None:
        wait_until(lambda: self.state(group_id) == state, f"{group_id} is {state}; it is {self.state(group_id)}")

    def wait_until_members(self, group_id: str, count: int) -> None:
        wait_until(lambda: len(self.describe(group_id).members) == count, f"{group_id} has {count} members")

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Every offset that the group has committed, by topic and partition."""
        asked = {"groups": [{"group_id": group_id, "topics": None}], "require_stable": True}
        group = self._settled(ApiKey.OFFSET_FETCH, 8, lambda response: response.groups[0], asked, f"offsets of {group_id}")
        assert group.error_code == 0
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in group.topics
            for partition in topic.partitions
        }

    def rebalances(self, group_id: str) -> list[dict[str, Any]]:
        """What the broker has logged of each rebalance of the group that ended well, over all its starts."""
        lines = (json.loads(line) for line in self._broker.stderr.splitlines() if line.startswith("{") and line.endswith("}"))
        return [line for line in lines if line.get("event") in REBALANCED and line["group"] == group_id]

    def generation(self, group_id: str) -> int:
        """The latest one that the log tells of."""
        rebalances = self.rebalances(group_id)
        return int(rebalances[-1]["generation"]) if rebalances else 0

    def _settled(self, api: ApiKey, version: int, part: Callable[[Any], Any], fields: Mapping[str, Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        for host, _, port in (address.partition(":") for address in cycle(self._broker.address.split(","))):
            with RawClient(host, int(port)) as client:
                answer = part(client.call(api, version, **fields))
            if answer.error_code not in RETRIABLE:
                break
            assert time.monotonic() < deadline, f"{what}: still error {answer.error_code}"
            time.sleep(POLL_INTERVAL_S)
        return answer


def fill(broker: BrokerProcess, topic: str, per_partition: int, partitions: int) -> None:
    """Produce ``per_partition`` records to each of the partitions 0 and up."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 1, "log_level": 0})
    errors = []
    for number in range(per_partition):
        for partition in range(partitions):
            producer.produce(
                topic, b"%d" % number, partition=partition, on_delivery=lambda error, _: errors.append(error) if error else None
            )
    assert producer.flush(WAIT_TIMEOUT_S) == 0
    assert errors == []
