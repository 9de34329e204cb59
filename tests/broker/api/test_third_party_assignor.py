"""The assignor of docs/assignors.md, installed as its reader would, in a broker."""

import sys
import tomllib

import pytest

from odradek.common.config import load
from odradek.protocol.errors import ErrorCode
from tests.broker.api.consumer_requests import beat
from tests.broker.api.in_process import Node, new_broker
from tests.project.documents import DOCS, code_blocks

DOCUMENT = DOCS / "assignors.md"


@pytest.fixture
async def node(tmp_path, monkeypatch):
    [source] = code_blocks(DOCUMENT, "python")
    [project] = code_blocks(DOCUMENT, "toml")
    [(group, registered)] = tomllib.loads(project)["project"]["entry-points"].items()
    (tmp_path / "whole_topics.py").write_text(source)
    installed = tmp_path / "whole_topics-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: whole-topics\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, target in registered.items()]
    (installed / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "whole_topics", raising=False)
    [properties] = code_blocks(DOCUMENT, "properties")
    names = ",".join(load(properties)["group.consumer.assignors"])
    async with new_broker(group_consumer_assignors=names, group_consumer_assignment_interval_ms="0") as broker:
        yield Node(broker)


def sizes(response):
    assert response.error_code == ErrorCode.NONE, response
    return [len(each.partitions) for each in response.assignment.topic_partitions]


async def test_the_documented_assignor_gives_each_topic_to_one_member(node):
    for name, partitions in (("t", 3), ("u", 2)):
        await node.create(name, partition_count=partitions)
    wanted = {"subscribed_topic_names": ["t", "u"], "server_assignor": "whole-topics"}
    assert sorted(sizes(await beat(node, "a", **wanted))) == [2, 3]
    await beat(node, "b", **wanted)
    given_up = await beat(node, "a", 2)
    assert sizes(given_up) in ([2], [3])


async def test_a_member_that_asks_for_an_assignor_that_is_not_there_is_told_which_are(node):
    response = await beat(node, server_assignor="halves")
    assert (response.error_code, response.error_message) == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "there is no assignor halves; assignors: uniform, range, whole-topics",
    )


async def test_a_member_whose_assignor_fails_is_told_so(node, monkeypatch):
    await node.create()
    monkeypatch.setattr(sys.modules["whole_topics"], "min", lambda *_, **__: 1 / 0, raising=False)
    response = await beat(node, server_assignor="whole-topics")
    assert (response.error_code, response.error_message) == (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "the assignor failed for epoch 2: division by zero",
    )
    assert sizes(await beat(node, server_assignor="uniform")) == [1]
