"""What partitions cost in memory while nobody uses them."""

import subprocess
import sys

# In a process of its own: threads that other tests have left at work would be counted too.
_PROGRAM = """
import gc
import tracemalloc

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.testing import SocketlessBroker

PARTITIONS = 200


def create(broker, name, partitions):
    types = messages(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    broker.ask(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)


def bytes_after_restart(broker):
    broker.stop()
    gc.collect()
    tracemalloc.start()
    broker.start()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


with SocketlessBroker() as broker:
    create(broker, "first", 1)
    before = bytes_after_restart(broker)
    create(broker, "many", PARTITIONS)
    print((bytes_after_restart(broker) - before) / PARTITIONS)
"""
# Some 3,100 are used. Another object for each partition, or one more that its topic's partitions do not share, is 50 to 120.
_MAX_BYTES = 3_200


def test_an_idle_partition_costs_three_kilobytes_of_memory():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=50)
    assert 1_000 < float(done.stdout) < _MAX_BYTES
