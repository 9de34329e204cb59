"""One history of a share group: brokers, their share coordinator, the topic and the members, on one virtual clock.

At each moment at which something is due all of it happens, then the coordinator's loop turns, then the ledger checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.share.requests import InitializeState
from odradek.coordinator.share.state import SharePartitionKey
from tests.campaigns.simulation.groups.logs import InjectedFault
from tests.campaigns.simulation.runner import Chronicle
from tests.campaigns.simulation.shares.broker import GROUP, Broker
from tests.campaigns.simulation.shares.coordinator import Coordinator
from tests.campaigns.simulation.shares.ledger import Ledger
from tests.campaigns.simulation.shares.members import Member
from tests.campaigns.simulation.shares.plan import draw
from tests.campaigns.simulation.shares.topic import TOPIC_ID, Written
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

MISTAKE = "the coordinator makes no mistake"
# Lines of the log that tell of a mistake of the broker.
_MISTAKES = frozenset({"cannot retry a delayed share fetch", "cannot load the state of a share partition"})


class World(Chronicle):
    """``leaders`` has the leader and the leader epoch of each partition."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show)
        self.plan = plan = draw(self.rng)
        self.is_in_trouble = True
        self.topic = [Written(index, plan.segment_bytes, self.clock.now_ms()) for index in range(plan.partitions)]
        self.leaders = [(index % plan.brokers, 0) for index in range(plan.partitions)]
        self.coordinator = Coordinator(plan, self.clock, self._on_fault)
        self.coordinator.start()
        self.ledger = Ledger(self)
        # The first violation: the product catches and logs what is raised within some of its calls.
        self.broken: Violation | None = None
        self._is_turn_due = False
        while self.coordinator.logs.soon:
            self.coordinator.logs.turn()
        for index in range(plan.partitions):
            self.coordinator.ask(InitializeState(SharePartitionKey(GROUP, TOPIC_ID, index), 0, -1))
        self.coordinator.logs.turn()
        self.brokers = [Broker(self, node_id) for node_id in range(plan.brokers)]
        self.members = [Member(self, f"m{number}") for number in range(plan.members)]
        self._born = plan.members
        self.later(0, self._produce)

    def up(self) -> list[Broker]:
        """Return the brokers that are up."""
        return [broker for broker in self.brokers if broker.is_up]

    def _on_fault(self, event: str, error: Exception) -> None:
        if isinstance(error, Violation):
            raise error
        if not isinstance(error, InjectedFault):
            raise Violation(MISTAKE, f"{event}: {error!r}") from error
        self.note("fault: %s: %s", event, error.code.name)

    def note_line(self, event: str, fields: dict[str, object]) -> None:
        """Note a line of the log. Raises Violation if it tells of a mistake."""
        self.counts[f"log: {event}"] += 1
        self.note("log: %s %s", event, fields)
        if event in _MISTAKES:
            raise self.broken or Violation(MISTAKE, f"{event}: {fields}")

    # --------------------------------------------------------------------------------------------------- time and chance

    def later(self, delay_ms: float, step: Callable[[], None]) -> None:
        """In ``delay_ms``, at the next tick of the plan's."""
        self.at_tick(delay_ms, self.plan.tick_ms, step)

    def latency_ms(self) -> int:
        """Draw the time that a message takes."""
        longest_ms = self.plan.longest_latency_ms if self.is_in_trouble else 0
        return self.rng.randint(0, longest_ms) if longest_ms and self.rng.random() < 0.5 else 0

    def is_lost(self) -> bool:
        """Draw whether a message is lost."""
        return self.is_in_trouble and self.rng.random() < self.plan.lost_share

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while True:
            timers = [broker.timer for broker in self.up()] + ([self.coordinator.timer] if self.coordinator.is_up else [])
            due_ms = min(self.next_due_ms(timer) for timer in (None, *timers))
            if due_ms > end_ms:
                break
            self.clock.advance(max(0, int(-(-(due_ms - self.clock.monotonic_ms()) // 1))))
            self._finish_moment()
        self.clock.advance(int(end_ms - self.clock.monotonic_ms()))

    def _finish_moment(self) -> None:
        logs = self.coordinator.logs
        if logs.soon and self.rng.random() < 0.85:
            logs.turn()
        if logs.soon and not self._is_turn_due:
            self._is_turn_due = True
            self.later(self.rng.choice((1, 1, 20, 200)), self._turn_is_due)
        self.ledger.check()

    def _turn_is_due(self) -> None:
        self._is_turn_due = False

    # ----------------------------------------------------------------------------------------------- the topic, the members

    def _produce(self) -> None:
        if not self.is_in_trouble:
            return
        plan, rng = self.plan, self.rng
        index = rng.randrange(plan.partitions)
        leader = self.leader_of(index)
        if leader is not None:
            self.topic[index].produce(
                leader.partitions[index],
                rng,
                self.clock.now_ms(),
                transactional_share=plan.transactional_share,
                hole_share=plan.hole_share,
            )
        self.later(rng.expovariate(1 / plan.produce_interval_ms), self._produce)

    def leader_of(self, index: int) -> Broker | None:
        """Return the broker that leads a partition, if it is up and knows."""
        node_id, epoch = self.leaders[index]
        broker = self.brokers[node_id]
        return broker if broker.is_up and broker.partitions[index].leader_epoch == epoch else None

    def elect(self, index: int, node_id: int) -> None:
        """Have a broker lead a partition. The brokers learn of it sooner or later."""
        self.leaders[index] = node_id, self.leaders[index][1] + 1
        self.note("%s leads %s in epoch %s", node_id, index, self.leaders[index][1])
        for broker in self.up():
            delay_ms = self.rng.choice((0, 0, 50, 2_000, 5_000)) if self.is_in_trouble else 0
            self.later(delay_ms, lambda broker=broker: broker.learn(index))  # type: ignore[misc]

    def start_broker(self, node_id: int) -> None:
        """Start a broker again."""
        self.note("%s starts", node_id)
        self.brokers[node_id] = Broker(self, node_id)
        for index, (leader, _) in enumerate(self.leaders):
            if leader == node_id:
                self.elect(index, node_id)

    def start_member(self) -> None:
        """Start a new member."""
        self._born += 1
        self.members.append(Member(self, f"m{self._born - 1}"))

    def alive(self) -> list[Member]:
        """Return the members that are alive."""
        return [member for member in self.members if member.is_alive]
