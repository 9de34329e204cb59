"""Consumer groups that either engine makes and the other goes on with: epochs, assignments and targets stay what they were.

    kept-static     its static member is away, and keeps its partitions; at each run it comes back under another id, and leaves
    kept-pattern    its member subscribes by a regular expression, which is resolved
    kept-revoking   one member is to give up a partition, and another waits for it; at each run that ends and begins again
    kept-mixed      a classic member has joined a member of the consumer protocol, and has not synced yet

``described`` is what a broker says of them, which has to be the same before and after. Sessions are long: who is silent while
the engines change is removed by neither.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.growing_out.inventory import KEPT, Inventory, NotYet
from tests.campaigns.growing_out.kafkas_own import accept, insist
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient

SETTINGS = {
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    # A member that joins changes what the others are to have at once.
    "group.consumer.assignment.interval.ms": "0",
}
# What odradek does not have: with it, a join is answered before its assignment is computed.
OF_KAFKA = {"group.consumer.assignor.offload.enable": "false"}
STATIC, PATTERN, REVOKING, MIXED = GROUPS = tuple(f"{KEPT}-{name}" for name in ("static", "pattern", "revoking", "mixed"))
_TIMEOUT_MS = 600_000
_LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
_ALL = frozenset({0, 1})


class ConsumerGroupsKept:
    """Members of the groups, as their libraries have them in mind. ``checks`` and ``differences`` as of ``kept.Kept``."""

    def __init__(self, topic: str) -> None:
        self.checks = 0
        self.differences: list[str] = []
        self._topic = topic
        self._epochs: dict[tuple[str, str], int] = {}
        self._classic = ""
        self._generation = -1
        self._left: list[int] = []
        self._runs = 0

    def leave(self, client: RawClient) -> None:
        """Make all of them, in the first run."""
        for group in GROUPS:
            _find(client, group)
        self._join(client, STATIC, "s0", instance_id="i")
        self._until_given(client, STATIC, "s0", _ALL)
        self._beat(client, STATIC, "s0", -2, instance_id="i")
        pattern = {"subscribed_topic_names": None, "subscribed_topic_regex": f"{self._topic}|nothing-.*"}
        self._join(client, PATTERN, "p", **pattern)
        self._until_given(client, PATTERN, "p", _ALL)
        self._join(client, REVOKING, "m")
        self._until_given(client, REVOKING, "m", _ALL)
        self._begin_revocation(client)
        self._join(client, MIXED, "c")
        self._until_given(client, MIXED, "c", _ALL)
        joined = client.call(ApiKey.JOIN_GROUP, 9, **self._classic_join(""))
        joined = accept(client.call(ApiKey.JOIN_GROUP, 9, **self._classic_join(joined.member_id)))
        self._classic, self._generation = str(joined.member_id), int(joined.generation_id)

    def go_on(self, client: RawClient) -> None:
        """Every member goes on as if there had been no stop."""
        self._runs += 1
        former, own = f"s{self._runs - 1}", f"s{self._runs}"
        answer = self._join(client, STATIC, own, instance_id="i")
        came_back = (answer.member_epoch, _given(answer))
        self._expect(f"{STATIC}: {own}'s epoch, and what it has", came_back, (self._epochs[STATIC, former], _ALL))
        answer = self._call(client, STATIC, former, self._epochs[STATIC, former], instance_id="i")
        self._expect(f"{STATIC}: {former}", ErrorCode(answer.error_code), ErrorCode.FENCED_INSTANCE_ID)
        self._beat(client, STATIC, own, -2, instance_id="i")
        for group, member in ((PATTERN, "p"), (REVOKING, "m"), (REVOKING, "n"), (MIXED, "c")):
            epoch = self._epochs[group, member]
            answer = self._settled(partial(self._call, client, group, member, epoch))
            told = (ErrorCode(answer.error_code), answer.member_epoch)
            self._expect(f"{group}: the epoch of {member}", told, (ErrorCode.NONE, epoch))
            stale = self._call(client, group, member, epoch + 1)
            self._expect(f"{group}: {member} ahead of its epoch", ErrorCode(stale.error_code), ErrorCode.FENCED_MEMBER_EPOCH)
        if not self.differences:
            self._end_revocation(client)
            self._begin_revocation(client)
        place = {"group_id": MIXED, "member_id": self._classic, "generation_id": self._generation}
        answer = client.call(ApiKey.HEARTBEAT, 4, **place)
        self._expect(f"{MIXED}: the classic member's heartbeat", ErrorCode(answer.error_code), ErrorCode.NONE)

    def _begin_revocation(self, client: RawClient) -> None:
        answer = self._join(client, REVOKING, "n")
        self._expect(f"{REVOKING}: n has", _given(answer), frozenset())
        answer = self._beat(client, REVOKING, "m", self._epochs[REVOKING, "m"])
        self._expect(f"{REVOKING}: m is left", len(_given(answer)), 1)
        self._left = sorted(_given(answer))

    def _end_revocation(self, client: RawClient) -> None:
        """What m gives up is n's; when n has left, m has all again."""
        ids = self._topic_id(client)
        (kept,) = self._left
        self._beat(client, REVOKING, "m", self._epochs[REVOKING, "m"], topic_partitions=[{"topic_id": ids, "partitions": [kept]}])
        self._until_given(client, REVOKING, "n", _ALL - {kept}, is_full=False)
        self._beat(client, REVOKING, "n", -1)
        self._until_given(client, REVOKING, "m", _ALL, owned=[kept])

    def _assigned(self, client: RawClient, group: str, member: str) -> frozenset[int]:
        described = client.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[group]).groups[0]
        (found,) = (each for each in described.members if each.member_id == member)
        return frozenset(index for topic in found.assignment.topic_partitions for index in topic.partitions)

    def _until_given(
        self, client: RawClient, group: str, member: str, wanted: frozenset[int], *, is_full: bool = True, owned: Any = ()
    ) -> None:
        """Heartbeats until the member has these partitions."""

        def is_given() -> bool:
            ids = self._topic_id(client)
            partitions = [{"topic_id": ids, "partitions": list(owned)}] if owned else []
            fields = {"topic_partitions": partitions} if is_full else {}
            self._beat(client, group, member, self._epochs[group, member], **fields)
            return self._assigned(client, group, member) == wanted

        until(is_given)
        self.checks += 1

    def _topic_id(self, client: RawClient) -> UUID:
        found = client.call(ApiKey.METADATA, 12, topics=[{"name": self._topic}]).topics[0].topic_id
        assert isinstance(found, UUID)
        return found

    def _join(self, client: RawClient, group: str, member: str, **fields: Any) -> Any:
        joining = {"rebalance_timeout_ms": _TIMEOUT_MS, "subscribed_topic_names": [self._topic], "topic_partitions": []}
        return self._beat(client, group, member, 0, **{**joining, **fields})

    def _beat(self, client: RawClient, group: str, member: str, epoch: int, **fields: Any) -> Any:
        answer = insist(lambda: self._call(client, group, member, epoch, **fields))
        self.checks += 1
        if answer.member_epoch >= 0:
            self._epochs[group, member] = int(answer.member_epoch)
        return answer

    def _settled(self, call: Callable[[], Any]) -> Any:
        """The answer, once the group's coordinator is loaded."""
        answers = []

        def is_settled() -> bool:
            answers.append(call())
            return answers[-1].error_code not in _LOADING

        until(is_settled)
        return answers[-1]

    def _call(self, client: RawClient, group: str, member: str, epoch: int, **fields: Any) -> Any:
        asked = {"group_id": group, "member_id": member, "member_epoch": epoch, "topic_partitions": None, **fields}
        return client.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **asked)

    def _classic_join(self, member_id: str) -> dict[str, Any]:
        # A subscription, version 0: the topic, and no user data.
        subscription = struct.pack(f">hih{len(self._topic)}si", 0, 1, len(self._topic), self._topic.encode(), -1)
        protocols = [{"name": "range", "metadata": subscription}]
        times = {"session_timeout_ms": _TIMEOUT_MS, "rebalance_timeout_ms": _TIMEOUT_MS}
        return {"group_id": MIXED, "member_id": member_id, "protocol_type": "consumer", "protocols": protocols, **times}

    def _expect(self, what: str, found: object, wanted: object) -> None:
        self.checks += 1
        if found != wanted:
            self.differences.append(f"{what}: {found}, and not {wanted}")


def _find(client: RawClient, group: str) -> None:
    """Whose coordinator's topic is made then, where there is none."""
    insist(lambda: client.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group]).coordinators[0])


def described(client: RawClient) -> Inventory:
    """The groups as ConsumerGroupDescribe has them. Raises NotYet for an error."""
    found: Inventory = {}
    for group in client.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=list(GROUPS)).groups:
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            continue
        if group.error_code:
            raise NotYet(f"{group.group_id}: error {group.error_code}")
        members = {
            str(each.member_id): (
                *(each.member_epoch, each.instance_id, sorted(each.subscribed_topic_names), each.subscribed_topic_regex),
                *(each.member_type, _told(each.assignment), _told(each.target_assignment)),
            )
            for each in group.members
        }
        state = (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name)
        found[f"consumer group {group.group_id}"] = (*map(str, state), sorted(members.items()))
    return found


def _told(assignment: Any) -> list[tuple[str, list[int]]]:
    return sorted((str(topic.topic_id), sorted(topic.partitions)) for topic in assignment.topic_partitions)


def _given(answer: Any) -> frozenset[int]:
    told = () if answer.assignment is None else answer.assignment.topic_partitions
    return frozenset(index for topic in told for index in topic.partitions)
