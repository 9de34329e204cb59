"""The comparison finds what differs, and the accounts what was promised and is not there.

Brokers of both engines are compared by ``tests/broker/cluster/test_kafka_member.py``, when they have stopped.
"""

from struct import pack

import pytest

from odradek.protocol.records import Record, build_batch
from tests.campaigns.mixed_clusters.comparison import (
    FAULTS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    Replica,
    compare,
    planted,
)
from tests.campaigns.mixed_clusters.load import IDEMPOTENT, PLAIN, TRANSACTED, violations

TOPIC = "t-with-dashes"
# (leader epoch, number of records)
BATCHES = [(0, 2), (0, 1), (3, 2), (5, 1)]


def write(directory, segments=(4,)):
    """A broker's data directory; ``segments`` are the numbers of batches in each."""
    replica = directory / f"{TOPIC}-0"
    replica.mkdir(parents=True)
    (directory / "__cluster_metadata-0").mkdir()
    offset, left = 0, list(BATCHES)
    for count in segments:
        data, base_offset = b"", offset
        for epoch, records in left[:count]:
            data += bytes(
                build_batch(
                    [Record(timestamp=1, value=b"v%d" % number) for number in range(records)],
                    base_offset=offset,
                    leader_epoch=epoch,
                )
            )
            offset += records
        del left[:count]
        (replica / f"{base_offset:020d}.log").write_bytes(data)
    (replica / LEADER_EPOCHS).write_text("0\n4\n0 0\n3 3\n5 5\n7 6\n")
    (replica / f"{offset:020d}.snapshot").write_bytes(pack(">hIi", 1, 0, 1) + pack(">qhiqiqiq", 7, 0, 0, 5, 0, 1, 0, -1))
    (directory / HIGH_WATERMARKS).write_text(f"0\n1\n{TOPIC} 0 {offset}\n")


@pytest.fixture
def data(tmp_path):
    """Three replicas; one has its segments elsewhere."""
    write(tmp_path / "1")
    write(tmp_path / "2", segments=(1, 3))
    write(tmp_path / "3")
    return {node_id: tmp_path / str(node_id) for node_id in (1, 2, 3)}


def test_replicas_that_say_the_same_do_not_differ(data):
    found = compare(data)
    assert found.differences == []
    assert (found.partitions, found.replicas, found.batches, found.epochs, found.producers) == (1, 3, 12, 9, 3)
    assert str(found).endswith("differences 0")


@pytest.mark.parametrize("node_id", [1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_any_replica_is_found(data, fault, node_id):
    with planted(fault, Replica(node_id, data[node_id] / f"{TOPIC}-0")):
        assert compare(data).differences
    assert compare(data).differences == []


@pytest.mark.parametrize("position", range(0, 66, 3))
def test_a_log_that_cannot_be_read_is_a_difference_too(data, position):
    [path] = (data[1] / f"{TOPIC}-0").glob("*.log")
    spoilt = bytearray(path.read_bytes())
    spoilt[position] ^= 0x41
    path.write_bytes(spoilt)
    assert compare(data).differences


def test_what_is_in_front_of_a_logs_start_has_no_epochs_any_more(data):
    for directory in data.values():
        (directory / LOG_STARTS).write_text(f"0\n1\n{TOPIC} 0 4\n")
        (directory / f"{TOPIC}-0" / LEADER_EPOCHS).write_text("0\n2\n3 4\n5 5\n")
    assert compare(data).differences == []
    (data[2] / LOG_STARTS).write_text("0\n0\n")
    assert any("the logs begin at 4 and 0" in each for each in compare(data).differences)


def test_what_differs_is_told_by_its_offset(data):
    with planted("the last batch is lost", Replica(3, data[3] / f"{TOPIC}-0")):
        told = [each for each in compare(data).differences if "the logs differ" in each]
    assert told == [f"{TOPIC}-0 on 1 and 3: the logs differ from offset 5 on, and end at 6 and 5"]


class Sent:
    """A writer that has ended."""

    def __init__(self, topic, acknowledged):
        self.topic, self.name, self.acknowledged, self.fatal = topic, topic, acknowledged, ""


def read(**topics):
    return {topic: {0: [f"{topic} {number}".encode() for number in numbers]} for topic, numbers in topics.items()}


@pytest.mark.parametrize(
    ("topic", "numbers", "told"),
    [
        (PLAIN, [1, 2, 2, 3], ""),
        (PLAIN, [1, 3], "lost: [2]"),
        (IDEMPOTENT, [1, 2, 3, 9], ""),
        (IDEMPOTENT, [1, 3, 2], "out of order"),
        (IDEMPOTENT, [1, 2, 2, 3], "twice"),
        (TRANSACTED, [1, 2], "lost: [3]"),
    ],
)
def test_what_was_promised_must_be_there(topic, numbers, told):
    found = violations([Sent(topic, [1, 2, 3])], read(**{topic: numbers}))
    assert (told in found[0]) if told else found == []
