"""A broker whose times are all as long as can be: no sum of one and the clock is too large for anything."""

import pytest

from odradek.common.config.broker_config import BROKER_CONFIGS
from odradek.common.config.definitions import ConfigType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from tests.broker.api.in_process import Node, new_broker

MINUTE_MS = 60 * 1000
LONGEST = {ConfigType.LONG: 2**63 - 1, ConfigType.INT: 2**31 - 1}
# The test waits for these. Nor does it go with a least time.
SHORTER = {"group.initial.rebalance.delay.ms", "log.cleaner.backoff.ms", "log.initial.task.delay.ms"}
OF_TOPICS = (
    *("retention_ms", "delete_retention_ms", "max_compaction_lag_ms", "segment_ms", "segment_jitter_ms", "file_delete_delay_ms"),
    *("flush_ms", "message_timestamp_before_max_ms", "message_timestamp_after_max_ms"),
)


def longest_times():
    """Each config of a time, with the largest value that it may have."""
    for name, definition in BROKER_CONFIGS.items():
        most = LONGEST.get(definition.type)
        if not name.endswith((".ms", ".minutes", ".hours", ".seconds")) or most is None or name in SHORTER or ".min." in name:
            continue
        if definition.valid is None or definition.valid(most) is None:
            # A group's members have to send more than one heartbeat in the longest session.
            is_heartbeat = name.startswith("group.") and name.endswith(".heartbeat.interval.ms") and ".max." not in name
            yield name.replace(".", "_"), str(most - 1 if is_heartbeat else most)


async def values(node):
    """(key, value) of the records that are left of partition 0."""
    found = []
    offset, end_offset = 0, 1
    while offset < end_offset:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="t", partitions=[asked])]
        response = await node.ask(ApiKey.FETCH, FetchRequest(topics=topics, max_bytes=1 << 20), 12)
        partition = response.responses[0].partitions[0]
        end_offset = partition.high_watermark
        data = bytes(partition.records.read())
        for position, header in iter_batches(data):
            found += [(record.key, record.value) for record in read_records(data, position)]
            offset = header.next_offset
    return found


@pytest.mark.parametrize("policy", ["delete", "compact"])
async def test_a_broker_whose_times_are_as_long_as_can_be_works(policy, capsys):
    node = Node(new_broker(**dict(longest_times()), log_cleaner_backoff_ms="1000"))
    await node.broker.start()
    small = {"internal_segment_bytes": "150", "min_cleanable_dirty_ratio": "0.0"}
    longest = {name: str(LONGEST[ConfigType.LONG]) for name in OF_TOPICS}
    await node.create("t", cleanup_policy=policy, **small, **longest)
    written = [(b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"b", None), (b"c", b"1"), (b"z", b"1")]
    for key, value in written:
        batch = build_batch([Record(key=key, value=value, timestamp=node.core.clock.now_ms())])
        assert (await node.produce(topics=[("t", [(0, batch)])])).error_code == ErrorCode.NONE
    assert await node.stable_member()
    assert await node.producer()
    await node.broker.advance(MINUTE_MS)
    await node.restart()
    await node.broker.advance(MINUTE_MS)
    assert await values(node) == (written if policy == "delete" else [written[1], *written[3:]])
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert (await node.ask(ApiKey.DELETE_TOPICS, request)).responses[0].error_code == ErrorCode.NONE
    await node.broker.advance(MINUTE_MS)
    await node.broker.stop()
    assert '"level": "error"' not in capsys.readouterr().err
