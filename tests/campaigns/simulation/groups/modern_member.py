"""A member whose coordinator assigns: its heartbeats, and its reaction to each error.

    no coordinator, or loading, or no response    send all there is to say again, after a while
    UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH        give up all it holds, join again
    FENCED_INSTANCE_ID, any other                 end; an operator may start it again

It holds what it was told to, as soon as it has given up what it was told to give up, which takes a while. It has one heartbeat
under way at a time. One whose answer is lost has arrived before the next one, or never does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from odradek.coordinator.group.consumer.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups.history import EPOCHS
from tests.campaigns.simulation.groups.members import Process
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from odradek.protocol.api_keys import ApiKey
    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

RETRIABLE = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_LOST_PLACE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_BACKOFF_MS = 100
NOTHING: frozenset[Any] = frozenset()


class ModernMember(Process, ABC):
    """One process. ``held`` are the parts of the assignment that it has, ``generation`` is its epoch."""

    api: ClassVar[ApiKey]
    speaks_consumer = True

    def __init__(
        self, world: World, group: GroupPlan, client_id: str, instance_id: str | None, *, member_id: str, version: int
    ) -> None:
        super().__init__(world, group, client_id, instance_id)
        self.member_id = member_id
        self.generation = 0
        self.held = NOTHING
        self.is_alive = True
        self._version = version
        self._target = NOTHING
        self._is_revoking = False
        self._is_waiting = False
        self._tells_all = True
        self._reported = NOTHING

    @abstractmethod
    def _request(self, held: frozenset[Any], *, tells_all: bool) -> Any:
        """Make a heartbeat of a member that has ``held``."""

    @abstractmethod
    def _farewell(self, epoch: int) -> Any:
        """Make the heartbeat of a member that leaves."""

    @abstractmethod
    def _told(self, response: Any) -> frozenset[Any] | None:
        """Return what the member is to have, None if the response does not say."""

    @property
    def is_settled(self) -> bool:
        """True once it has reported everything, and has what it was told to have."""
        is_told = self.generation > 0 and not self._tells_all and not self._is_waiting
        return is_told and not self._is_revoking and self.held == self._target == self._reported

    def __str__(self) -> str:
        return f"{self.client_id}({self.member_id or '?'}, {self.generation}, {len(self.held)} of {len(self._target)})"

    # ------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        """Join, and send heartbeats from then on."""
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        self._beat()

    def die(self) -> None:
        """End the process without a word."""
        self.is_alive = False
        self.turn += 1

    def lose_connection(self) -> None:
        """The request under way has no answer."""
        self.turn += 1
        self._is_waiting = False
        self._tells_all = True
        if self._is_revoking:
            self._soon(_BACKOFF_MS, self._reconciled)
        self._soon(_BACKOFF_MS, self._beat)

    def leave(self, *, for_good: bool) -> None:
        """Leave the group, and end or come back. A static member leaves for a while, but at the end of the history."""
        self.held = self._target = NOTHING
        is_for_a_while = self.instance_id is not None and self._world.is_in_trouble and self._world.rng.random() < 0.8
        if self.member_id:
            request = self._farewell(LEAVE_STATIC_EPOCH if is_for_a_while else LEAVE_EPOCH)
            self._world.ask(self, self.api, self._version, lambda: request, lambda _: None)
        if for_good:
            self.die()
        else:
            self._lose_place()
            self._soon(500, self._beat)

    def _lose_place(self) -> None:
        self.turn += 1
        self.generation = 0
        self.held = self._target = self._reported = NOTHING
        self._is_revoking = self._is_waiting = False
        self._tells_all = True

    # ------------------------------------------------------------------------------------------------ how it gets on

    def _tick(self) -> None:
        if not self.is_alive:
            return
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        if not self._is_stalled:
            self._beat()
            if self.held:
                self._world.offsets.commit(self, lambda _: None)

    def _beat(self) -> None:
        if self._is_waiting:
            return
        self._is_waiting = True
        tells_all = self._tells_all or self.generation == 0 or self._world.rng.random() < 0.1
        held = NOTHING if self.generation == 0 else self.held
        request = self._request(held, tells_all=tells_all)
        self._reported = held
        # It may have more to tell before it has the answer.
        self._tells_all = False
        self._ask(self.api, self._version, request, self._on_answer)

    def _on_answer(self, response: Any) -> None:
        self._is_waiting = False
        is_lost = response is None or self._world.may_repeat()
        code = ErrorCode.NOT_COORDINATOR if is_lost else response.error_code
        if code == ErrorCode.NONE:
            self._on_granted(response)
        elif code in RETRIABLE:
            self._tells_all = True
            self._soon(_BACKOFF_MS, self._beat)
        elif code in _LOST_PLACE:
            self._lose_place()
            self._beat()
        else:
            self._world.note("%s ends with %s", self.client_id, ErrorCode(code).name)
            self.die()
            if code != ErrorCode.FENCED_INSTANCE_ID:
                self._world.restart_later(self)

    def _on_granted(self, response: Any) -> None:
        if response.member_epoch < self.generation:
            raise Violation(EPOCHS, f"{self} is told that it is in {response.member_epoch}")
        self.member_id = response.member_id
        self.generation = response.member_epoch
        told = self._told(response)
        if told is None:
            return
        self._target = told
        if self._is_revoking or self._target == self.held:
            return
        if self.held <= self._target:
            self._reconciled()
        else:
            self._is_revoking = True
            is_slow = self._world.rng.random() < self._world.plan.slowness
            self._world.offsets.commit(self, lambda _: None)
            self._soon(self._world.rng.choice((2_000, 12_000)) if is_slow else self._world.rng.randint(0, 50), self._reconciled)

    def _reconciled(self) -> None:
        self._is_revoking = False
        new = self._target - self.held
        self.held = self._target
        if new:
            self._world.offsets.fetch(self)
        self._beat()
