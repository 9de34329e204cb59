"""What goes wrong in a history of consumer groups: what does in one of classic groups, and what befalls topics and protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.campaigns.simulation.faults import Faults

if TYPE_CHECKING:
    from tests.campaigns.simulation.consumer_groups.world import ConsumerWorld


class ConsumerFaults(Faults):
    """Those that the world's plan has."""

    def __init__(self, world: ConsumerWorld) -> None:
        super().__init__(world)  # type: ignore[arg-type]  # another world
        self._consumers = world
        self._kinds |= {
            "create a topic": self._create_topic,
            "grow a topic": self._grow_topic,
            "delete a topic": lambda: self._delete_topic(is_made_anew=False),
            "make a topic anew": lambda: self._delete_topic(is_made_anew=True),
            "roll over": self._roll_over,
            "change its subscription": self._change_subscription,
        }

    def _topic(self, *, is_there: bool) -> str | None:
        topics = self._consumers.topics
        names = [name for group in self._consumers.plan.groups for name in group.topics if (name in topics.ids) == is_there]
        return self._rng.choice(names) if names else None

    def _create_topic(self) -> None:
        name = self._topic(is_there=False)
        if name is not None:
            self._consumers.note("%s is created", name)
            self._consumers.topics.create(name, self._rng.randint(1, 4))

    def _grow_topic(self) -> None:
        name = self._topic(is_there=True)
        if name is not None:
            self._consumers.note("%s grows", name)
            self._consumers.topics.grow(name, self._rng)

    def _delete_topic(self, *, is_made_anew: bool) -> None:
        name = self._topic(is_there=True)
        if name is None:
            return
        world = self._consumers
        world.note("%s is %s", name, "made anew" if is_made_anew else "deleted")
        world.offsets.forget_topic(name)
        world.topics.delete([name])
        if is_made_anew:
            world.topics.create(name, self._rng.randint(1, 4))

    def _roll_over(self) -> None:
        """A process is replaced by one of the other protocol. A static member of the classic one does not leave."""
        world = self._consumers
        alive = world.alive()
        if not alive:
            return
        process = self._rng.choice(alive)
        world.note("%s rolls over", str(process))
        successor = world.successor(process, speaks_consumer=not process.speaks_consumer)
        if process.instance_id is not None and not process.speaks_consumer:
            process.die()
        else:
            process.leave(for_good=True)
        world.later(self._rng.choice((0, 500, 2_000)), lambda: world.start_member(successor) if world.is_in_trouble else None)

    def _change_subscription(self) -> None:
        alive = [each for each in self._consumers.alive() if each.speaks_consumer or each.instance_id is None]
        if alive:
            process = self._rng.choice(alive)
            subscription = self._consumers.draw_subscription(process.group)
            self._consumers.note("%s subscribes to %s", str(process), subscription)
            process.subscribe(subscription)
