"""An administrator who describes and lists groups. The existing groups are compared with the log, their state with the shard.

Groups of both protocols are described as such where all that was decided is committed.

A group exists for others once its record is committed, and is shown in its state at that time. The members' subscriptions and
the protocol are shown for a Stable group only; each member's assignment must then be the one in the log for the generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.campaigns.simulation.groups import requests
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.group import ClassicGroup
    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

SHOWN = "groups are shown as they are"
_DEAD = GroupState.DEAD.value


class Administrator:
    """Of one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def describe(self, group: GroupPlan) -> None:
        """DescribeGroups or ConsumerGroupDescribe for one group."""
        if not self._world.plan.is_classic:
            asked = ConsumerGroupDescribeRequest(group_ids=[group.group_id])
            self._world.ask(
                None,
                ApiKey.CONSUMER_GROUP_DESCRIBE,
                1,
                lambda: asked,
                lambda response: self._check_consumer_group(response, group.group_id),
            )
            return
        version = self._world.rng.choice((5, 6))
        request = requests.describe(group.group_id)
        self._world.ask(None, ApiKey.DESCRIBE_GROUPS, version, lambda: request, self._note_described)

    def list(self) -> None:
        """ListGroups: all, or those in one state."""
        states = self._world.rng.choice(((), (), ("Stable",), ("empty", "PreparingRebalance")))
        self._world.ask(
            None, ApiKey.LIST_GROUPS, 5, lambda: requests.list_groups(states), lambda each: self._note_listed(each, states)
        )

    def _note_described(self, response: Any) -> None:
        if response is None:
            return
        described = response.groups[0]
        self._world.counts[f"DESCRIBE_GROUPS {ErrorCode(described.error_code).name}"] += 1
        group_id = described.group_id
        is_absent = described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return
        exists = self._world.log_of(group_id).has_group(group_id)
        group = self._find(group_id)
        # A group whose deletion has been decided is hidden at once.
        is_being_deleted = exists and group is None and self._is_under_way(group_id)
        if not is_being_deleted and exists == (is_absent or described.group_state == _DEAD):
            raise Violation(SHOWN, f"{group_id} is {'there' if exists else 'not there'}, and described as {described}")
        if exists and group is not None:
            self._check_described(described, group)

    def _check_described(self, described: Any, group: ClassicGroup) -> None:
        group_id = group.group_id
        is_stable = group.state is GroupState.STABLE
        shown = (described.group_state, described.protocol_type, described.protocol_data)
        there = (group.state.value, group.protocol_type or "", group.protocol or "" if is_stable else "")
        shown_members = [(each.member_id, each.group_instance_id, each.client_id) for each in described.members]
        members = [(each.member_id, each.group_instance_id, each.client_id) for each in group.members.values()]
        if shown != there or shown_members != members:
            raise Violation(SHOWN, f"{group_id} is {there}, with {members}, and described as {described}")
        if any(bool(each.member_metadata) != is_stable for each in described.members):
            raise Violation(SHOWN, f"{group_id} is {group.state}, and its members' metadata are described as {described}")
        if is_stable:
            written = self._world.log_of(group_id).history.generations[group_id][group.generation].assignments
            assigned = {each.group_instance_id or each.member_id: bytes(each.member_assignment) for each in described.members}
            if assigned != dict(written):
                raise Violation(SHOWN, f"{group_id} has {written} written, and {assigned} is described")

    def _note_listed(self, response: Any, states: tuple[str, ...]) -> None:
        if response is None or response.error_code != ErrorCode.NONE:
            return
        world = self._world
        wanted = {state.lower() for state in states}
        expected = {}
        for plan in world.plan.groups:
            group = self._find(plan.group_id)
            is_there = group is not None and world.log_of(plan.group_id).has_group(plan.group_id)
            if group is not None and is_there and (not wanted or group.state.value.lower() in wanted):
                expected[plan.group_id] = group.state.value
        listed = {each.group_id: each.group_state for each in response.groups}
        if listed != expected or len(response.groups) != len(listed):
            raise Violation(SHOWN, f"{expected} are there, in {states or 'any state'}, and {listed} are listed")

    def _is_under_way(self, group_id: str) -> bool:
        hosted = self._world.hosted(group_id)
        return hosted is not None and hosted.committed_offset < hosted.next_offset

    def _find(self, group_id: str) -> ClassicGroup | None:
        hosted = self._world.hosted(group_id)
        return None if hosted is None else hosted.shard.classic.find(group_id)

    def _check_consumer_group(self, response: Any, group_id: str) -> None:
        hosted = self._world.hosted(group_id)
        if response is None or hosted is None or hosted.committed_offset < hosted.next_offset:
            return
        described = response.groups[0]
        group = hosted.shard.groups.find(group_id)
        is_there = isinstance(group, ConsumerGroup)
        if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return
        if is_there != (described.error_code == ErrorCode.NONE):
            raise Violation(SHOWN, f"{group_id} is {group}, and described as {described}")
        if isinstance(group, ConsumerGroup):
            shown = (
                described.group_epoch,
                described.assignment_epoch,
                {each.member_id: each.member_epoch for each in described.members},
            )
            there = (
                group.epoch.get(),
                group.assignment_epoch,
                {each.member_id: each.member_epoch for each in group.members.values()},
            )
            if shown != there or described.group_state != group.state:
                raise Violation(SHOWN, f"{group_id} is {there}, {group.state}, and described as {described}")
