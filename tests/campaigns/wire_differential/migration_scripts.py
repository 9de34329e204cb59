"""What members of both protocols do in one group, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.wire_differential.migration_steps import Steps

ALL = {"t": [0, 1, 2, 3]}


def up_and_down(on: Steps) -> None:
    """A cooperative classic member, one of the consumer protocol that joins it and goes again."""
    on.join("a")
    on.sync("a", {"a": ALL})
    on.commit("a", 1)
    on.beat("n")
    on.listed()
    on.commit("a", 2)
    on.heartbeat("a")
    on.join("a", owned=ALL)
    on.sync("a")
    on.heartbeat("a")
    on.join("a", owned={"t": [0, 1]})
    on.sync("a")
    on.beat("n", owned={})
    on.heartbeat("a")
    on.commit("n", 3)
    on.beat("n", -1)
    on.listed()
    on.heartbeat("a")
    on.commit("a", 4)
    on.join("a", owned={"t": [0, 1]})
    on.sync("a", {"a": ALL})
    on.heartbeat("a")
    on.fetch()
    on.leave(("a", None))
    on.listed()
    on.beat("m")
    on.fetch()
    on.beat("m", -1)
    on.listed()
    on.join("b")
    on.listed()


def eager(on: Steps) -> None:
    """A classic member that owns nothing as it joins comes to a consumer group, and leaves it."""
    on.beat("n")
    on.join("a")
    on.sync("a")
    on.heartbeat("a")
    on.beat("n", owned={"t": [0, 1]})
    on.heartbeat("a")
    on.join("a")
    on.sync("a")
    on.heartbeat("a")
    on.beat("n", owned={"t": [0, 1]})
    on.leave(("a", None))
    on.beat("n", owned={"t": [0, 1]})
    on.listed()


def static_members(on: Steps) -> None:
    """A static member goes from the consumer protocol to the classic one, which downgrades its group, and back."""
    on.beat("n", instance_id="i")
    on.join("b", instance_id="i")
    on.listed()
    on.sync("b", group_instance_id="i")
    on.heartbeat("b", group_instance_id="i")
    on.beat("m", instance_id="i")
    on.heartbeat("b", group_instance_id="i")
    on.beat("m", instance_id="i", owned=ALL)
    on.beat("m", -2, instance_id="i")
    on.join("c", instance_id="i")
    on.listed()


def static_with_another_subscription(on: Steps) -> None:
    """The group rebalances after its downgrade."""
    on.beat("n", instance_id="i")
    on.join("b", names=["t", "u"], instance_id="i")
    on.listed()
    on.sync("b", group_instance_id="i")
    on.join("b", names=["t", "u"], instance_id="i")


def static_member_of_either(on: Steps) -> None:
    """A static member is replaced across protocols in a group that has members of both."""
    on.beat("x")
    on.beat("n", instance_id="i")
    on.beat("x", owned={"t": [0, 1]})
    on.beat("n", instance_id="i", owned={})
    on.join("b", instance_id="i")
    on.sync("b", group_instance_id="i")
    on.heartbeat("b", group_instance_id="i")
    on.beat("n", instance_id="i", owned={"t": [2, 3]})
    on.join("c", instance_id="i")
    on.heartbeat("b", group_instance_id="i")
    on.beat("m", 0, instance_id="i")
    on.heartbeat("c", group_instance_id="i")


def held_requests(on: Steps) -> None:
    """A classic group that rebalances is upgraded."""
    on.join("a")
    on.sync("a", {"a": ALL})
    on.join("b", is_held=True)
    on.heartbeat("a")
    # Of another topic, so that no assignor has to choose between two new members.
    on.beat("n", subscribed_topic_names=["u"])
    on.joined("b")
    on.heartbeat("a")
    on.listed()


def refusals(on: Steps) -> None:
    """What is not as it has to be."""
    on.beat("n")
    on.join("x", member_id="made-up")
    on.join("y", protocols=["sticky"])
    on.join("y", protocol_type="connect")
    on.join("y", instance_id="i", member_id="made-up")
    on.heartbeat("n")
    on.heartbeat("x", generation_id=99)
    on.heartbeat("nobody")
    on.sync("n")
    on.sync("x", generation_id=99)
    on.sync("x", protocol_name="sticky")
    on.sync("x", protocol_type="connect")
    on.leave(("nobody", None), ("", "i"), ("n", None))
    on.listed()


def leaves_by_hand(on: Steps) -> None:
    """A LeaveGroup removes the last member of the consumer protocol."""
    on.beat("n", instance_id="i")
    on.join("a")
    on.sync("a")
    on.leave(("", "i"))
    on.listed()
    on.heartbeat("a")
    on.beat("n", instance_id="i", owned=ALL)


def same_id(on: Steps) -> None:
    """A member goes over to the other protocol under its id."""
    on.beat("n")
    on.join("n", member_id="n")
    on.listed()
    on.beat("n", 0)
    on.listed()


SCRIPTS: list[Callable[[Steps], None]] = [
    up_and_down,
    eager,
    static_members,
    static_with_another_subscription,
    static_member_of_either,
    held_requests,
    refusals,
    leaves_by_hand,
    same_id,
]
