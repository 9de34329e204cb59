"""The requests of members and administrators about a group's offsets, and the checks of the responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation import requests
from tests.campaigns.simulation.commits import Commits
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.commits import Commit
    from tests.campaigns.simulation.consumer import Consumer
    from tests.campaigns.simulation.plan import GroupPlan
    from tests.campaigns.simulation.world import World

# Errors after which no record of the request can be in the log.
REFUSALS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class OffsetRequests:
    """The requests in one world. No offset is committed twice."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._commits = Commits()

    def commit(self, consumer: Consumer, partitions: tuple[int, ...], answered: Callable[[int], None]) -> None:
        """A member commits offsets of some or none of its partitions."""
        rng = self._world.rng
        if rng.random() < self._world.plan.commit_share:
            chosen = partitions if rng.random() < 0.5 else (rng.choice(partitions),)
            self._commit(consumer, consumer.group.group_id, chosen, answered)

    def commit_as_administrator(self, group: GroupPlan) -> None:
        """A client that is no member resets an offset."""
        self._commit(None, group.group_id, (self._world.rng.randrange(group.partition_count),), lambda _: None)

    def _commit(
        self, consumer: Consumer | None, group_id: str, partitions: tuple[int, ...], answered: Callable[[int], None]
    ) -> None:
        world = self._world
        version = world.rng.choice((8, 10))
        first = world.tokens
        world.tokens += len(partitions)
        offsets = dict(zip(partitions, range(first, world.tokens), strict=True))
        commits: list[Any] = []

        def build() -> Any:
            commits.append(self._commits.ask(group_id, offsets))
            return requests.commit(consumer, group_id, world.broker.topic_ids[group_id], offsets)

        def respond(response: Any) -> None:
            if response is None:
                self._commits.refuse(commits[0])
                return
            codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
            code = codes.pop()
            if codes:
                raise Violation("a commit stands or falls as a whole", f"{group_id}: {response}")
            if code == ErrorCode.NONE:
                self._commits.acknowledge(commits[0])
            elif code in REFUSALS:
                self._commits.refuse(commits[0])
            answered(code)

        world.ask(consumer, ApiKey.OFFSET_COMMIT, version, build, respond)

    def fetch_all(self, group: GroupPlan) -> None:
        """A client that is no member fetches all offsets of a group."""
        self._fetch(None, group.group_id, tuple(range(group.partition_count)))

    def fetch(self, consumer: Consumer, partitions: tuple[int, ...]) -> None:
        """A member fetches its starting offsets."""
        self._fetch(consumer, consumer.group.group_id, partitions)

    def _fetch(self, consumer: Consumer | None, group_id: str, partitions: tuple[int, ...]) -> None:
        world = self._world
        is_stable = world.rng.random() < 0.5
        request = requests.fetch(group_id, world.broker.topic_ids[group_id], partitions, require_stable=is_stable)
        asked: dict[int, list[Commit]] = {}

        def build() -> Any:
            asked.update(self._commits.possible(group_id, partitions))
            return request

        def respond(response: Any) -> None:
            if response is None or response.groups[0].error_code != ErrorCode.NONE:
                return
            for partition in response.groups[0].topics[0].partitions:
                if not is_stable:
                    world.log_of(group_id).check_read(group_id, partition.partition_index, partition.committed_offset)
                index = partition.partition_index
                self._commits.check_fetched(group_id, index, partition.committed_offset, asked[index])

        world.ask(consumer, ApiKey.OFFSET_FETCH, 9, build, respond)

    def delete(self, group: GroupPlan) -> None:
        """A client deletes a group, and its offsets with it."""
        world = self._world
        deletions: list[Any] = []

        def build() -> Any:
            deletions.append(self._commits.ask_to_delete(group.group_id, range(group.partition_count)))
            return requests.delete(group.group_id)

        def respond(response: Any) -> None:
            code = ErrorCode.NOT_COORDINATOR if response is None else response.results[0].error_code
            world.counts[f"DELETE_GROUPS {ErrorCode(code).name}"] += 1
            if code == ErrorCode.NONE:
                self._commits.acknowledge(deletions[0])
            elif response is None or code in REFUSALS:
                self._commits.refuse(deletions[0])

        world.ask(None, ApiKey.DELETE_GROUPS, 2, build, respond)
