"""The requests of members and administrators about offsets, and the checks of the responses.

What is committed is known by group and topic name. With a topic its offsets may go, or may not, where no coordinator was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation import requests
from tests.campaigns.simulation.commits import Commits
from tests.campaigns.simulation.consumer_groups.topics import MOST_PARTITIONS
from tests.campaigns.simulation.offset_requests import REFUSALS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.commits import Commit
    from tests.campaigns.simulation.consumer_groups.plan import GroupPlan
    from tests.campaigns.simulation.consumer_groups.world import ConsumerWorld

FENCED = "members that are fenced are not served"
_NO_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})
_REFUSALS = REFUSALS | _NO_TOPIC | {ErrorCode.STALE_MEMBER_EPOCH}


def _scope(group_id: str, topic: str) -> str:
    return f"{group_id}/{topic}"


class ConsumerOffsets:
    """The requests in one world. No offset is committed twice."""

    def __init__(self, world: ConsumerWorld) -> None:
        self._world = world
        self._commits = Commits()

    def commit(self, member: Any, answered: Callable[[int], None]) -> None:
        """A member commits offsets of some or none of its partitions, of one topic."""
        rng = self._world.rng
        if rng.random() >= self._world.plan.commit_share:
            return
        names = self._world.topics.names
        owned = sorted((names[topic_id], index) for topic_id, index in member.partitions if topic_id in names)
        if owned:
            topic = rng.choice(owned)[0]
            self._commit(member, member.group.group_id, topic, [index for name, index in owned if name == topic], answered)

    def commit_as_administrator(self, group: GroupPlan) -> None:
        """A client that is no member resets an offset."""
        topic = self._world.rng.choice(tuple(group.topics))
        if self._world.topics.count(topic):
            self._commit(None, group.group_id, topic, [0], lambda _: None)

    def _commit(self, member: Any, group_id: str, topic: str, partitions: list[int], answered: Callable[[int], None]) -> None:
        world = self._world
        offsets = {index: world.new_token() for index in partitions}
        request = requests.commit(member, group_id, world.topics.ids[topic], offsets, topic=topic)
        commits: dict[int, Commit] = {}

        def build() -> Any:
            commits.update(
                {index: self._commits.ask(_scope(group_id, topic), {index: offset}) for index, offset in offsets.items()}
            )
            return request

        def respond(response: Any) -> None:
            codes = dict.fromkeys(commits, ErrorCode.UNKNOWN_MEMBER_ID)
            if response is not None:
                codes = {each.partition_index: each.error_code for each in response.topics[0].partitions}
            for index, code in codes.items():
                if code == ErrorCode.NONE:
                    self._commits.acknowledge(commits[index])
                elif response is None or code in _REFUSALS:
                    self._commits.refuse(commits[index])
            if response is not None:
                first = next(iter(codes.values()))
                answered(ErrorCode.NONE if first in _NO_TOPIC else first)

        def send() -> None:
            world.ask(member, ApiKey.OFFSET_COMMIT, world.rng.choice((9, 10)), build, respond)

        if world.may_repeat():
            # On another connection, which is slow.
            world.later(world.rng.choice((500, 3_000)), send)
        else:
            send()

    def fetch_all(self, group: GroupPlan) -> None:
        """A client that is no member fetches all offsets of a group's topics."""
        for topic in group.topics:
            self._fetch(None, group.group_id, topic, tuple(range(self._world.topics.count(topic))))

    def fetch(self, member: Any, _: object = None) -> None:
        """A member fetches where to start."""
        names = self._world.topics.names
        owned = sorted((names[topic_id], index) for topic_id, index in member.partitions if topic_id in names)
        if owned:
            topic = owned[0][0]
            self._fetch(member, member.group.group_id, topic, tuple(index for name, index in owned if name == topic))

    def _fetch(self, member: Any, group_id: str, topic: str, partitions: tuple[int, ...]) -> None:
        world = self._world
        if not partitions:
            return
        request = requests.fetch(
            group_id, world.topics.ids[topic], partitions, require_stable=world.rng.random() < 0.5, topic=topic, member=member
        )
        asked: dict[int, list[Commit]] = {}
        objections: list[str] = []

        def build() -> Any:
            asked.update(self._commits.possible(_scope(group_id, topic), partitions))
            if member is not None:
                objections.append(world.objection_to_epoch(group_id, request.groups[0].member_id, request.groups[0].member_epoch))
            return request

        def respond(response: Any) -> None:
            if response is None or response.groups[0].error_code != ErrorCode.NONE:
                return
            if objections and objections[0]:
                raise Violation(FENCED, f"{objections[0]}: {request}")
            for partition in response.groups[0].topics[0].partitions:
                if partition.error_code == ErrorCode.NONE:
                    index = partition.partition_index
                    self._commits.check_fetched(_scope(group_id, topic), index, partition.committed_offset, asked[index])

        world.ask(member, ApiKey.OFFSET_FETCH, 9, build, respond)

    def forget_topic(self, topic: str) -> None:
        """The topic is about to be deleted."""
        for group in self._world.plan.groups:
            self._commits.ask_to_delete(_scope(group.group_id, topic), range(MOST_PARTITIONS))

    def delete(self, group: GroupPlan) -> None:
        """A client deletes a group, and its offsets with it."""
        deletions: list[Commit] = []

        def build() -> Any:
            scopes = [_scope(group.group_id, topic) for topic in group.topics]
            deletions.extend(self._commits.ask_to_delete(scope, range(MOST_PARTITIONS)) for scope in scopes)
            return requests.delete(group.group_id)

        def respond(response: Any) -> None:
            code = ErrorCode.NOT_COORDINATOR if response is None else response.results[0].error_code
            self._world.counts[f"DELETE_GROUPS {ErrorCode(code).name}"] += 1
            for deletion in deletions:
                if code == ErrorCode.NONE:
                    self._commits.acknowledge(deletion)
                elif response is None or code in _REFUSALS:
                    self._commits.refuse(deletion)

        self._world.ask(None, ApiKey.DELETE_GROUPS, 2, build, respond)
