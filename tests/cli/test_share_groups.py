"""``odradek groups`` of share groups, and what ``broker.groups`` tests are told of them."""

import asyncio
import json

import pytest
from confluent_kafka import AcknowledgeType

from odradek.testing import Broker
from tests.broker.api.share_requests import ShareNode
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer

CONFIGS = {"group.share.assignment.interval.ms": "0"}


class Run:
    """The command, beside the broker whose loop this is."""

    def __init__(self, command, broker):
        self._command = command
        self._address = broker.bootstrap_servers

    async def __call__(self, *arguments):
        """(exit status, stdout, stderr)."""
        return await asyncio.to_thread(self._command, *arguments, "--bootstrap-server", self._address)

    async def json(self, *arguments):
        status, out, err = await self(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)


@pytest.fixture
async def node():
    """The group ``g`` of ``m`` and ``n``. ``m`` has begun to read the first partition of ``t``."""
    async with Broker(topics={"t": 2}, configs=CONFIGS) as broker:
        node = ShareNode(broker)
        await node.turn_on()
        await broker.produce("t", ["a", "b", "c"], partition=0)
        await node.beat("m")
        await node.beat("n")
        await node.settle()
        await node.beat("m", 2)
        await node.beat("n", 3)
        for key, state in node.states.states.items():
            if key.partition == 0:
                node.states.states[key] = state._replace(start_offset=1, delivery_complete_count=1)
        yield node


async def test_a_share_group_is_listed_and_described(node, command):
    run = Run(command, node.broker)
    assert await run.json("groups", "list", "--type", "share") == [
        {"group": "g", "state": "Stable", "type": "share", "protocol_type": "share", "coordinator": 1}
    ]
    assert await run.json("groups", "list", "--type", "classic") == []
    (group,) = await run.json("groups", "describe", "g")
    assert (group["type"], group["protocol"], len(group["members"])) == ("share", "simple", 2)
    assert group["partitions"] == [
        {"topic": "t", "partition": 0, "start_offset": 1, "lag": 1, "consumer_ids": ["m"]},
        {"topic": "t", "partition": 1, "start_offset": None, "lag": None, "consumer_ids": ["n"]},
    ]
    _, text, _ = await run("groups", "describe", "g")
    assert "START-OFFSET" in text
    explained = await run.json("groups", "explain", "g")
    assert [move["to"] for move in explained["assignments"][-1]["moves"]] == ["m", "n"]


async def test_offsets_of_a_share_group_are_reset_and_deleted_without_members(node, command):
    run = Run(command, node.broker)
    status, _, err = await run("groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--execute")
    assert (status, "has members" in err) == (1, True)
    for member_id in "mn":
        await node.beat(member_id, -1)
    rows = await run.json("groups", "reset-offsets", "g", "--topic", "t", "--to-latest", "--execute")
    assert [(row["partition"], row["current_offset"], row["new_offset"]) for row in rows] == [(0, 1, 3), (1, None, 0)]
    assert {key.partition: state.start_offset for key, state in node.states.states.items()} == {0: 3, 1: 0}
    assert await run.json("groups", "delete-offsets", "g", "--topic", "t") == [{"group": "g", "topic": "t"}]
    status, _, err = await run("groups", "delete-offsets", "g", "--topic", "t")
    assert (status, "no offset information" in err) == (1, True)
    assert await run.json("groups", "delete", "g") == [{"group": "g"}]


def test_the_stored_states_of_a_share_groups_records_are_shown(command):
    with Broker(topics={TOPIC: 1}) as broker:
        address = ("--bootstrap-server", broker.bootstrap_servers)
        set_group_configs(broker.bootstrap_servers)
        broker.produce(TOPIC, ["a", "b", "c", "d"])
        with share_consumer(broker.bootstrap_servers) as consumer:
            messages = polled(consumer)
            assert command("groups", "records", GROUP, "--json", *address)[:2] == (0, "[]\n")
            for message, answer in zip(messages[1:3], (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE), strict=True):
                consumer.acknowledge(message, answer)
            consumer.commit_sync()
            status, text, _ = command("groups", "records", GROUP, *address)
        # The first and the last one are held.
        assert (status, [line.split() for line in text.splitlines()]) == (
            0,
            [
                ["TOPIC", "PARTITION", "FIRST-OFFSET", "LAST-OFFSET", "STATE", "DELIVERY-COUNT"],
                [TOPIC, "0", "1", "1", "ACKNOWLEDGED", "1"],
                [TOPIC, "0", "2", "2", "AVAILABLE", "1"],
            ],
        )
        status, _, err = command("groups", "records", "no-such-group", *address)
        assert (status, "no-such-group" in err) == (1, True)


async def test_tests_are_told_of_a_share_group(node):
    group = (await node.broker.groups)["g"]
    assert (group.group_type, group.state, group.protocol, group.topics) == ("share", "Stable", "simple", ("t",))
    assert {member.member_id: member.partitions for member in group.members} == {"m": (("t", 0),), "n": (("t", 1),)}
    assert (group.offsets, group.lag, group.total_lag) == ({("t", 0): 1}, {("t", 0): 1}, 1)
    assert str(group).startswith("share group 'g': Stable, members m (t-0), n (t-1); start offsets t-0 1 (lag 1)")
