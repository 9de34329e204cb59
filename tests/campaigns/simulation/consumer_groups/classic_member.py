"""A member that speaks the classic protocol, and whose subscription and assignment can be read, as a conversion has to.

It looks at the metadata of topics as it heartbeats: it joins again where its regular expression matches others, and, as a leader,
where a topic of the group has more partitions or is another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions, read_subscription
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.consumer import Consumer, Phase
from tests.coordinator.group.migration_bed import assignment, subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from tests.campaigns.simulation.consumer_groups.member import Subscription
    from tests.campaigns.simulation.consumer_groups.topics import Topics


class ClassicMember(Consumer):
    """``owned`` are pairs of a topic's name and a partition."""

    speaks_consumer = False

    def __init__(self, subscription_: Subscription, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.subscription = subscription_
        self._ids: dict[str, UUID] = {}
        self._ids_as_told: dict[str, UUID] = {}
        self._joined_with: list[str] = []
        # Of a leader: the topics of the group as it knew them.
        self._known: dict[str, tuple[UUID | None, int]] = {}

    @property
    def partitions(self) -> frozenset[tuple[UUID, int]]:
        """What it owns, by the ids that the topics had when it was assigned."""
        return frozenset((self._ids[name], index) for name, index in self.owned if name in self._ids)

    @property
    def is_settled(self) -> bool:
        """Whether it has told all there is to say, and has what it was told to have."""
        return self.phase is Phase.STABLE and self._names() == self._joined_with

    def join_again(self) -> None:
        """As an operator has it do."""
        self._join()

    def subscribe(self, subscription_: Subscription) -> None:
        """Subscribe to other topics; seen at the next heartbeat."""
        self.subscription = subscription_

    def _names(self) -> list[str]:
        topics: Topics = self._world.topics
        found = topics.matching(self.subscription.pattern) if self.subscription.pattern else self.subscription.names
        return sorted(found)

    def _join(self) -> None:
        self._known = {}
        self._joined_with = self._names()
        super()._join()

    def _metadata(self) -> bytes:
        owned: dict[str, list[int]] = {}
        for name, index in self.owned:
            owned.setdefault(name, []).append(index)
        return subscription(self._joined_with, owned)

    def _assigned(self, assignment: bytes) -> tuple[Any, ...]:
        self._world.is_changed = True
        self._ids = self._ids_as_told
        return tuple((name, index) for name, indexes in assigned_partitions(assignment) for index in indexes)

    def _on_join(self, response: Any) -> None:
        if response is not None and response.error_code == ErrorCode.NONE and response.members:
            names = {name for member in response.members for name in read_subscription(bytes(member.metadata)).topics}
            self._known = {name: self._look_at(name) for name in names}
        super()._on_join(response)

    def _look_at(self, name: str) -> tuple[UUID | None, int]:
        topics: Topics = self._world.topics
        return topics.ids.get(name), topics.count(name)

    def _when_current(self, step: Callable[..., None]) -> Callable[..., None]:
        """The same, and some answers are lost on their way."""

        def take(*answers: Any) -> None:
            step(*((None,) if answers and not isinstance(answers[0], int) and self._world.may_repeat() else answers))

        return super()._when_current(take)

    def _ask(self, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        if api_key is not ApiKey.SYNC_GROUP:
            super()._ask(api_key, version, request, answered)
            return
        ids: dict[str, UUID] = {}

        def build() -> Any:
            ids.update(self._world.topics.ids)
            return request

        def respond(response: Any) -> None:
            self._ids_as_told = ids
            answered(response)

        self._world.ask(self, api_key, version, build, self._when_current(respond))

    def _tick(self) -> None:
        super()._tick()
        if self.phase is Phase.STABLE and not self._is_stalled:
            has_changed = any(self._look_at(name) != known for name, known in self._known.items())
            if has_changed or self._names() != self._joined_with:
                self._join()

    def _commit(self) -> None:
        if self.owned:
            self._world.offsets.commit(self, self._when_current(self._on_commit))


def shares(members: Any, topics: Topics) -> list[tuple[str, bytes]]:
    """The assignment that a leader makes: a partition that a member owns goes to nobody else before it has given it up."""
    said = {member.member_id: read_subscription(bytes(member.metadata)) for member in members}
    owners: dict[tuple[str, int], set[str]] = {}
    for member_id, each in said.items():
        for name, indexes in each.owned:
            for index in indexes:
                owners.setdefault((name, index), set()).add(member_id)
    given: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in said}
    for name in sorted({name for each in said.values() for name in each.topics}):
        readers: Sequence[str] = sorted(member_id for member_id, each in said.items() if name in each.topics)
        for index in range(topics.count(name)):
            wanted = readers[index % len(readers)]
            if owners.get((name, index), set()) <= {wanted}:
                given[wanted].setdefault(name, []).append(index)
    return [(member_id, assignment(share)) for member_id, share in given.items()]
