"""A start returns a complete object, or leaves nothing open: the broker and the controller, with and without listeners."""

import ast
import asyncio
import errno
import inspect
import os
import textwrap
from pathlib import Path

import pytest

from odradek.broker.coordination.coordinator_host import CoordinatorHost
from odradek.broker.network.listeners import ServedListeners
from odradek.broker.replica.housekeeping import Housekeeping
from odradek.broker.start import cluster_start, controller_node, storage_start
from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.controller_node import ControllerServer
from odradek.broker.start.server import Broker
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import InvalidConfig, load
from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.runtime.hosted_shard import HostedShard
from odradek.storage.errors import DataDirectoryLocked
from odradek.testing.disk import MemoryDisk

ELSEWHERE = {"process.roles": "broker", "node.id": "2", "controller.listener.names": "C", "controller.quorum.voters": "1@h:9093"}
BOTH = {
    "listeners": "PLAINTEXT://127.0.0.1:0,C://127.0.0.1:0",
    "controller.listener.names": "C",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,C:PLAINTEXT",
}
CONTROLLER = BOTH | {"process.roles": "controller", "listeners": "C://127.0.0.1:0"}
ALONE = {"listeners": "PLAINTEXT://127.0.0.1:0"}
STARTS = [(BrokerServer, ALONE), (BrokerServer, BOTH), (ControllerServer, CONTROLLER)]
# The classes of the objects that a start makes.
COMPLETE = [
    Broker,
    BrokerServer,
    ClassicGroups,
    ControllerServer,
    CoordinatorHost,
    HostedShard,
    Housekeeping,
    ServedListeners,
    SharedServer,
    controller_node.ControllerNode,
    cluster_start.ClusterMember,
    cluster_start.OwnController,
    storage_start.OwnCluster,
]


def shared(disk, **configs):
    return SharedServer(load(None, {"log.dirs": "/data", **configs}), file_system=disk)


async def test_a_broker_whose_controller_is_elsewhere_begins_no_cluster_of_its_own(tmp_path):
    config = load(None, {**ELSEWHERE, "log.dirs": str(tmp_path / "data")})
    with pytest.raises(InvalidConfig, match=r"process\.roles"):
        Broker.start(SharedServer(config))
    assert not (tmp_path / "data").exists()


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", COMPLETE, ids=lambda kind: kind.__name__)
def test_a_constructor_makes_every_attribute(kind):
    """No method adds one later, and no class has a part that is declared without a value."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    declared = [each.target.id for each in body if isinstance(each, ast.AnnAssign) and each.value is None]
    assert declared == []
    made, added = set(), set()
    for method in body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {
                node.attr
                for node in ast.walk(method)
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
            }
            bare = {
                node.target.attr
                for node in ast.walk(method)
                if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Attribute)
            }
            assert bare == set()
            (made if method.name == "__init__" else added).update(names)
    assert added <= made


@pytest.mark.parametrize("room", ["start", "network/listeners.py"])
def test_nobody_asks_whether_a_part_is_there_yet(room):
    place = Path(inspect.getfile(Broker)).parent.parent / room
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        source = path.read_text()
        assert "hasattr(" not in source
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(("kind", "configs"), STARTS)
async def test_a_start_that_fails_leaves_nothing_open(kind, configs):
    disk = MemoryDisk()
    first = await kind.start(shared(disk, **configs))
    port = first.bound_address[1]
    refused = shared(disk, **configs)
    with pytest.raises(DataDirectoryLocked):
        await kind.start(refused)
    assert refused.timer.next_deadline_ms() is None
    await first.stop()
    # Its address and its directory are free again.
    again = await kind.start(shared(disk, **configs | {"listeners": configs["listeners"].replace(":0", f":{port}", 1)}))
    await again.stop()


@pytest.mark.parametrize(("kind", "configs"), STARTS)
async def test_a_start_that_is_cancelled_leaves_nothing_open(kind, configs, monkeypatch):
    disk = MemoryDisk()

    async def never(*_):
        await asyncio.get_running_loop().create_future()

    with monkeypatch.context() as patch:
        patch.setattr(ServedListeners, "serve", never)
        starting = asyncio.ensure_future(kind.start(shared(disk, **configs)))
        while not starting.cancelled():
            starting.cancel() if disk._locks else None
            await asyncio.sleep(0)
    assert not disk._locks
    await (await kind.start(shared(disk, **configs))).stop()


@pytest.mark.parametrize(("kind", "configs"), STARTS)
async def test_a_disk_that_fails_in_the_start_is_left_unlocked(kind, configs, monkeypatch):
    disk = MemoryDisk()

    def refuse(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(storage_start, "open_metadata_log", refuse)
        patch.setattr(controller_node, "open_metadata_log", refuse)
        with pytest.raises(OSError, match="Input/output error"):
            await kind.start(shared(disk, **configs))
    assert not disk._locks
