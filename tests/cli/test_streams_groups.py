"""``odradek groups`` of streams groups."""

import asyncio
import json

from odradek.testing import Broker
from tests.broker.api.consumer_requests import commit
from tests.broker.api.streams_requests import NO_DELAY, StreamsNode

CONFIGS = {name.replace("_", "."): value for name, value in NO_DELAY.items()}


async def test_a_streams_group_is_listed_described_and_explained(command):
    async with Broker(topics={"t": 2}, configs={**CONFIGS, "group.streams.num.standby.replicas": "1"}) as broker:
        node = StreamsNode(broker)
        await node.beat()
        await node.beat("m", 2)
        await node.beat("n", process_id="q")
        await node.beat("m", 3)
        assert await commit(node, 3) == 0

        async def run(*arguments):
            status, out, err = await asyncio.to_thread(command, *arguments, "--bootstrap-server", broker.bootstrap_servers)
            assert status == 0, err
            return out

        assert [each["type"] for each in json.loads(await run("groups", "list", "--type", "streams", "--json"))] == ["streams"]
        (group,) = json.loads(await run("groups", "describe", "g", "--json"))
        assert (group["type"], group["protocol"], group["topology_epoch"]) == ("streams", "sticky", 0)
        assert [each["subtopology"] for each in group["subtopologies"]] == ["0", "1"]
        assert [each["task"] for each in group["tasks"]] == ["0_0", "0_1", "1_0", "1_1", "1_2"]
        # Tasks that a member is to give up are nobody's, and go to another once it has.
        holders = [(each["active"], each["moves_to"]) for each in group["tasks"]]
        assert sorted(holders, key=str) == [("m", None)] * 3 + [(None, "n")] * 2
        read = {(row["topic"], row["partition"]): (row["current_offset"], row["consumer_id"]) for row in group["partitions"]}
        assert read["t", 0] == (7, "m")
        text = await run("groups", "describe", "g")
        assert "STATE-CHANGELOG-TOPICS" in text
        explained = await run("groups", "explain", "g")
        assert "n of process q joined" in explained
        assert "active task 1_1 from m to n: its member had more than its share" in explained
