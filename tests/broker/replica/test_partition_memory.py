"""What partitions cost in memory while nobody uses them."""

import gc
import tracemalloc

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.testing import SocketlessBroker
from odradek.testing.blocking import BlockingBroker

_PARTITIONS = 200
# Some 3,000 are used. Another object for each partition, or one more that its topic's partitions do not share, is 50 to 120.
_MAX_BYTES = 3_200


def test_an_idle_partition_costs_three_kilobytes_of_memory():
    with SocketlessBroker() as broker:
        _create(broker, "first", 1)
        before_bytes = _bytes_after_restart(broker)
        _create(broker, "many", _PARTITIONS)
        after_bytes = _bytes_after_restart(broker)
    assert 1_000 < (after_bytes - before_bytes) / _PARTITIONS < _MAX_BYTES


def _create(broker: BlockingBroker, name: str, partitions: int) -> None:
    types = messages(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    broker.ask(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)


def _bytes_after_restart(broker: BlockingBroker) -> int:
    broker.stop()
    gc.collect()
    tracemalloc.start()
    try:
        broker.start()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
