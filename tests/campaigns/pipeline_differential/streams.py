"""A streams group without an application: its members only beat, and take the tasks that they are given."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from odradek.protocol.message_types.streams_group_heartbeat import (
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.campaigns.kafka_tools.kafka_broker import until

GROUP: Final = "sums"
# Nobody beats while the pipeline reads.
SETTINGS: Final = {
    "group.streams.session.timeout.ms": "3600000",
    "group.streams.max.session.timeout.ms": "3600000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
_TIMEOUT_S: Final = 30.0
_MOST_MEMBERS: Final = 3
_TOPOLOGY: Final = Topology(
    epoch=1,
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["orders"], repartition_sink_topics=["sums-by-day"]),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=[TopicInfo(name="sums-by-day", partitions=3)],
            state_changelog_topics=[TopicInfo(name="sums-store-changelog")],
        ),
    ],
)


@dataclass
class _Member:
    member_id: str
    process_id: str
    epoch: int = 0
    tasks: dict[str, list[RequestTaskIds]] = field(default_factory=lambda: {"active": [], "standby": []})
    # The tasks as the coordinator was told them last.
    told: dict[str, list[RequestTaskIds]] = field(default_factory=dict)


class StreamsLife:
    """The members, until ``close``. The topic ``orders`` is there."""

    def __init__(self, address: str, random: Random) -> None:
        self._random = random
        self._client = connect(address)
        self._members: list[_Member] = []
        self._made = 0

    def step(self) -> None:
        """Have a member come or go, and let each beat once."""
        if self._members and (len(self._members) == _MOST_MEMBERS or self._random.random() < 0.4):
            self._beat(self._members.pop(self._random.randrange(len(self._members))), leaves=True)
        else:
            self._made += 1
            self._members.append(_Member(f"member-{self._made}", f"process-{self._random.randrange(2)}"))
        self._beat_all()

    def settle(self) -> None:
        """Wait until every member has what is meant for it."""

        def is_settled() -> bool:
            changed = self._beat_all()
            group = described(self._client)
            is_whole = group.group_state in {"Stable", "Empty"} and group.assignment_epoch == group.group_epoch
            return not changed and is_whole and all(each.epoch == group.group_epoch for each in self._members)

        until(is_settled)

    def close(self) -> None:
        """Close the connection. Nobody leaves."""
        self._client.close()

    def _beat_all(self) -> bool:
        """Let each member beat once. Return whether one has got another epoch, or other tasks."""
        return sum(self._beat(each) for each in self._members) > 0

    def _beat(self, member: _Member, *, leaves: bool = False) -> bool:
        joins = member.epoch == 0
        tells = joins or (not leaves and member.told != member.tasks)
        tasks = {f"{kind}_tasks": each for kind, each in member.tasks.items()} | {"warmup_tasks": []} if tells else {}
        names = {"rebalance_timeout_ms": 60_000, "topology": _TOPOLOGY, "process_id": member.process_id, "client_tags": []}
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member.member_id,
            member_epoch=-1 if leaves else member.epoch,
            **(names if joins else {}),
            **tasks,
        )
        response = self._client.call(Api(ApiKey.STREAMS_GROUP_HEARTBEAT), request)
        assert response.error_code == 0, response
        if tells:
            member.told = dict(member.tasks)
        before = member.epoch, dict(member.tasks)
        member.epoch = response.member_epoch
        for kind, given in (("active", response.active_tasks), ("standby", response.standby_tasks)):
            if given is not None:
                member.tasks[kind] = [RequestTaskIds(each.subtopology_id, list(each.partitions)) for each in given]
        return before != (member.epoch, member.tasks)


def connect(address: str) -> BlockingClient:
    """A connection to the broker."""
    host, _, port = address.rpartition(":")
    return BlockingClient(host, int(port), "streams", _TIMEOUT_S)


def described(client: BlockingClient) -> DescribedGroup:
    """The group, as the broker describes it."""
    [group] = client.call(Api(ApiKey.STREAMS_GROUP_DESCRIBE), StreamsGroupDescribeRequest(group_ids=[GROUP])).groups
    assert group.error_code == 0, group
    return group


def tasks(address: str) -> dict[tuple, tuple]:
    """The members that have a task, (active, standby), by group, subtopology and partition."""
    client = connect(address)
    try:
        members = described(client).members
    finally:
        client.close()
    active, standby = (
        [
            ((GROUP, ids.subtopology_id, partition), member.member_id)
            for member in members
            for ids in getattr(member.assignment, kind)
            for partition in ids.partitions
        ]
        for kind in ("active_tasks", "standby_tasks")
    )
    holders = dict(active)
    return {
        key: (holders.get(key), sorted(member_id for each, member_id in standby if each == key))
        for key in holders.keys() | dict(standby).keys()
    }
