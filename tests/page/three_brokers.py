"""Three of the test kit's brokers on one loop, as one cluster. The first one is its controller, too."""

from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.ports import free_ports
from odradek.testing import Broker


@asynccontextmanager
async def three_brokers(tmp_path):
    controller_port, *ports = free_ports(4)
    shared = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "default.replication.factor": 3,
        "offsets.topic.replication.factor": 3,
        "transaction.state.log.replication.factor": 3,
        "group.initial.rebalance.delay.ms": 0,
    }
    async with AsyncExitStack() as stack:
        brokers = []
        for node_id, port in enumerate(ports, start=1):
            listeners = f"PLAINTEXT://127.0.0.1:{port}"
            configs = {"process.roles": "broker", "advertised.listeners": listeners}
            if node_id == 1:
                configs["process.roles"] = "broker,controller"
                listeners += f",CONTROLLER://127.0.0.1:{controller_port}"
            broker = Broker(tmp_path / str(node_id), configs={**shared, **configs, "node.id": node_id, "listeners": listeners})
            brokers.append(broker)
        for broker in brokers:
            await stack.enter_async_context(broker)
        yield brokers
