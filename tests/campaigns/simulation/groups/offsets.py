"""The requests of members and administrators about offsets, and the checks of the responses.

What is committed is known by group and topic name: for each partition the commits since the last acknowledged one. An
unacknowledged commit may be in the log or not, unless it was refused. A commit that was fetched counts as acknowledged: only
committed offsets are fetched, and committed offsets stay. With a topic its offsets may go, or may not, where no coordinator was
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups import requests
from tests.campaigns.simulation.groups.broker import MOST_PARTITIONS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

FENCED = "members that are fenced are not served"
_NO_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})
# Errors after which no record of the request can be in the log.
_REFUSALS = _NO_TOPIC | frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
Place: TypeAlias = tuple[str, int]


class Commit:
    """Offsets by partition, all of them or none; None deletes the offset.

    ``may_be_late``: the deletion of a group that is not answered yet. It is decided once all before it is committed, and may come
    after a later commit.
    """

    __slots__ = ("group_id", "is_refused", "may_be_late", "offsets")

    def __init__(self, group_id: str, offsets: Mapping[int, int | None]) -> None:
        self.group_id = group_id
        self.offsets = offsets
        self.is_refused = False
        self.may_be_late = False


def _drop_before(known: list[Commit], index: int) -> None:
    known[:index] = [commit for commit in known[:index] if commit.may_be_late and not commit.is_refused]


class Commits:
    """The commits in the order of their requests; initially there are none."""

    def __init__(self) -> None:
        # By place, ascending: the last commit known to be in the log, and the later ones.
        self._open: dict[Place, list[Commit]] = {}

    def ask(self, group_id: str, offsets: Mapping[int, int | None]) -> Commit:
        """The broker is asked to commit."""
        commit = Commit(group_id, offsets)
        for partition in offsets:
            self._at(group_id, partition).append(commit)
        return commit

    def ask_to_delete(self, group_id: str, partitions: Iterable[int]) -> Commit:
        """The broker is asked to delete the group's offsets."""
        return self.ask(group_id, dict.fromkeys(partitions))

    def acknowledge(self, commit: Commit) -> None:
        """The commit is in the log, and overwrites all before it."""
        for partition in commit.offsets:
            known = self._at(commit.group_id, partition)
            if commit in known:
                _drop_before(known, known.index(commit))
            commit.may_be_late = False

    def refuse(self, commit: Commit) -> None:
        """The commit is not in the log, and never will be."""
        commit.is_refused = True

    def possible(self, group_id: str, partitions: Iterable[int]) -> dict[int, list[Commit]]:
        """By partition, the commits that may be in the log now; for a request sent now and answered later."""
        return {partition: self._at(group_id, partition)[:] for partition in partitions}

    def check_fetched(self, group_id: str, partition: int, offset: int, asked: list[Commit]) -> None:
        """``offset`` was fetched, -1 for none. Raises Violation if it cannot be the committed one.

        It may be the present one, or one that was possible when it was ``asked`` for: a response may wait until its content is
        committed, and then shows the state at its decision.
        """
        known = self._at(group_id, partition)
        wanted = None if offset == -1 else offset
        for index, commit in enumerate(known):
            if commit.offsets[partition] == wanted and not commit.is_refused:
                _drop_before(known, index)
                return
        if any(commit.offsets[partition] == wanted and not commit.is_refused for commit in asked):
            return
        possible = [commit.offsets[partition] for commit in known if not commit.is_refused]
        what = f"{group_id}, partition {partition}: {wanted} is fetched, where it can be one of {possible}"
        raise Violation("what was committed is what is fetched", what)

    def _at(self, group_id: str, partition: int) -> list[Commit]:
        known = self._open.get((group_id, partition))
        if known is None:
            known = self._open[group_id, partition] = [Commit(group_id, {partition: None})]
        return known


def _scope(group_id: str, topic: str) -> str:
    return f"{group_id}/{topic}"


class Offsets:
    """The requests in one world. No offset is committed twice."""

    def __init__(self, world: World) -> None:
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
            indexes = [index for name, index in owned if name == topic]
            if self._world.plan.is_classic and rng.random() < 0.5:
                indexes = [rng.choice(indexes)]
            self._commit(member, member.group.group_id, topic, indexes, answered)

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
            if world.plan.is_classic and len(set(codes.values())) > 1:
                raise Violation("a commit stands or falls as a whole", f"{group_id}: {response}")
            for index, code in codes.items():
                if code == ErrorCode.NONE:
                    self._commits.acknowledge(commits[index])
                elif response is None or code in _REFUSALS:
                    self._commits.refuse(commits[index])
            if response is not None:
                first = next(iter(codes.values()))
                answered(ErrorCode.NONE if first in _NO_TOPIC else first)

        def send() -> None:
            world.ask(member, ApiKey.OFFSET_COMMIT, world.rng.choice((8 if world.plan.is_classic else 9, 10)), build, respond)

        if world.may_repeat():
            # On another connection, which is slow.
            world.later(world.rng.choice((500, 3_000)), send)
        else:
            send()

    def fetch_all(self, group: GroupPlan) -> None:
        """A client that is no member fetches all offsets of a group's topics."""
        for topic in group.topics:
            self._fetch(None, group.group_id, topic, tuple(range(self._world.topics.count(topic))))

    def fetch(self, member: Any) -> None:
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
        is_stable = world.rng.random() < 0.5
        request = requests.fetch(
            group_id, world.topics.ids[topic], partitions, require_stable=is_stable, topic=topic, member=member
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
                    # With a topic its offsets go, some of them before that is committed.
                    if world.plan.is_classic and not is_stable:
                        world.log_of(group_id).check_read(group_id, topic, index, partition.committed_offset)
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
            for deletion in deletions:
                deletion.may_be_late = True
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
