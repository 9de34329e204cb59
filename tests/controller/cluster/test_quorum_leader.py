"""What observers fetch of a controller's metadata log: Fetch and FetchSnapshot, as Kafka's KafkaRaftClient answers them."""

import pytest

from odradek.controller.metadata.scram_credentials import credential_record
from odradek.controller.metadata.snapshot_files import BOOTSTRAP
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.fetch import FetchRequest, FetchTopic
from odradek.protocol.metadata_records import ConfigRecord, decode
from odradek.protocol.quorum_records import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, control_type
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.protocol.scram import MECHANISMS
from tests.controller.cluster.nodes import NODE_ID, NodeBed
from tests.memory_filesystem import MemoryFile


@pytest.fixture
def bed():
    return NodeBed()


def batches(partition):
    return [header for _, header in iter_batches(partition.records)]


def change(bed, number=1):
    bed.node.controller.write([ConfigRecord(resource_type=4, resource_name="", name="x", value=str(number))])


def test_an_epoch_begins_with_a_change_of_leader_that_names_the_voter(bed):
    first = bed.fetch()
    header = batches(first)[0]
    assert (header.base_offset, header.partition_leader_epoch, header.is_control) == (0, 1, True)
    [record] = read_records(first.records)
    assert control_type(record) == LEADER_CHANGE
    # Version 0, the leader, and two arrays of the one voter.
    assert record.value.hex() == "00000000000302000000030002000000030000"


def test_the_log_names_the_voter_of_a_quorum_that_is_configured_by_its_address():
    bed = NodeBed(controller_quorum_bootstrap_servers="h:9093")
    change, version, voters = read_records(bed.fetch().records)
    assert [control_type(record) for record in (change, version, voters)] == [LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS]
    directory = bed.node.leader.directory_id.hex
    # Version 0 here, too: Kafka 4.3 reads no other.
    assert change.value.hex() == "000000000003" + "020000000300" * 2 + "00"
    assert version.value.hex() == "0000000100"
    endpoint = (b"\x0bCONTROLLER\x0a127.0.0.1" + (9093).to_bytes(2, "big") + b"\0").hex()
    assert voters.value.hex() == f"0000 02 00000003 {directory} 02 {endpoint} 0000 0001 00 00 00".replace(" ", "")
    assert bed.node.log.kraft_version == 1
    for number in range(300):
        bed.node.controller.write([ConfigRecord(resource_type=4, resource_name="", name="x", value=str(number))])
    bed.restart()
    assert bed.node.log.kraft_version == 1


def test_a_quorum_that_became_dynamic_stays_so(bed):
    assert bed.node.log.kraft_version == 0
    end_offset = bed.node.log.end_offset
    assert bed.node.controller.update_features([("kraft.version", 1, 1)]).response is None
    told = [control_type(record) for record in read_records(bed.fetch(end_offset, 1).records)]
    assert (told, bed.node.log.kraft_version) == ([KRAFT_VERSION, KRAFT_VOTERS], 1)
    end_offset = bed.node.log.end_offset
    bed.restart()
    data = bed.fetch(end_offset, 1).records
    controls = [position for position, header in iter_batches(data) if header.is_control]
    told = [control_type(record) for position in controls for record in read_records(data, position)]
    assert (told, bed.node.log.kraft_version) == ([LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS], 1)


def test_each_start_begins_an_epoch(bed):
    end_offset = bed.node.log.end_offset
    bed.restart()
    assert bed.node.leader.epoch == 2
    header = batches(bed.fetch(end_offset, 1))[0]
    assert (header.base_offset, header.partition_leader_epoch, header.is_control) == (end_offset, 2, True)


def test_an_epoch_is_above_all_that_kafka_has_seen_there(bed):
    bed.node.close()
    bed.log_manager.shutdown(0)
    state = b'{"leaderId":3,"leaderEpoch":41,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    bed.file_system.write_atomic("/data/__cluster_metadata-0/quorum-state", state)
    bed.start()
    assert bed.node.leader.epoch == 42


def test_what_is_synced_is_committed_and_told(bed):
    partition = bed.fetch(bed.node.log.end_offset, 1)
    assert partition.high_watermark == bed.node.log.synced_offset == bed.node.log.end_offset
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (NODE_ID, 1)
    assert partition.records == b""


def test_a_fetch_that_finds_nothing_waits_for_the_next_change(bed):
    end_offset = bed.node.log.end_offset
    reply = bed.fetch(end_offset, 1, max_wait_ms=300)
    assert not reply.done
    change(bed)
    assert reply.done
    partition = reply.response.responses[0].partitions[0]
    assert [header.base_offset for header in batches(partition)] == [end_offset]
    assert partition.high_watermark == end_offset + 1
    assert [(node.node_id, node.host, node.port) for node in reply.response.node_endpoints] == [(NODE_ID, "127.0.0.1", 9093)]


def test_a_fetch_waits_no_longer_than_it_wants(bed):
    reply = bed.fetch(bed.node.log.end_offset, 1, max_wait_ms=300)
    bed.clock.advance(299)
    assert not reply.done
    bed.clock.advance(1)
    assert reply.response.responses[0].partitions[0].records == b""


def test_who_does_not_know_the_high_watermark_is_told_at_once(bed):
    partition = bed.fetch(bed.node.log.end_offset, 1, max_wait_ms=300, high_watermark=0)
    assert partition.high_watermark == bed.node.log.end_offset


def test_fetches_that_wait_are_answered_when_the_controller_stops(bed):
    reply = bed.fetch(bed.node.log.end_offset, 1, max_wait_ms=300)
    bed.node.close()
    assert reply.response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("leader_epoch", "error"), [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH), (2, ErrorCode.NONE)]
)
def test_another_epoch_is_refused_and_told_the_leader(bed, leader_epoch, error):
    bed.restart()
    partition = bed.fetch(0, 0, leader_epoch=leader_epoch)
    assert partition.error_code == error
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (NODE_ID, 2)


def test_another_cluster_is_refused(bed):
    asked = bed.fetch_request(0, 0, cluster_id="another")
    assert bed.ask(ApiKey.FETCH, asked).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("topics", [[], [FetchTopic(topic="t", partitions=[])]])
def test_there_is_no_other_log(bed, topics):
    assert bed.ask(ApiKey.FETCH, FetchRequest(topics=topics)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("offset", "epoch"), [(-1, 0), (0, -1)])
def test_numbers_that_are_none_are_refused(bed, offset, epoch):
    assert bed.fetch(offset, epoch).error_code == ErrorCode.INVALID_REQUEST


def test_a_log_that_diverges_is_told_where(bed):
    end_of_first = bed.node.log.end_offset
    bed.restart()
    end_offset = bed.node.log.end_offset
    for offset, epoch, told in (
        (end_of_first + 2, 1, (1, end_of_first)),
        (end_offset + 9, 2, (2, end_offset)),
        (end_offset, 7, (2, end_offset)),
    ):
        partition = bed.fetch(offset, epoch, max_wait_ms=300)
        assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == told
        assert not partition.records
    assert bed.fetch(end_of_first, 1).diverging_epoch.epoch == -1


def test_a_fetch_ends_with_a_whole_batch(bed):
    for number in range(40):
        change(bed, number)
    asked = bed.fetch_request(0, 0)._replace(max_bytes=700)
    records = bed.ask(ApiKey.FETCH, asked).responses[0].partitions[0].records
    end = sum(header.size_bytes for _, header in iter_batches(records))
    assert 0 < end == len(records) <= 700


def small_snapshots():
    """A node whose log begins at a snapshot, an earlier one having gone."""
    bed = NodeBed(metadata_log_max_record_bytes_between_snapshots="1000", metadata_max_retention_bytes="1")
    for number in range(200):
        change(bed, number)
    assert bed.node.log.start_offset > 0
    return bed


def test_who_has_nothing_is_sent_to_the_newest_snapshot():
    bed = small_snapshots()
    newest = bed.node.log.snapshots.ids[-1]
    for offset, epoch in ((0, 0), (bed.node.log.start_offset - 1, 1), (bed.node.log.start_offset, 0)):
        partition = bed.fetch(offset, epoch, max_wait_ms=300)
        assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == newest
        assert partition.records is None
    assert bed.fetch(newest.end_offset, newest.epoch).snapshot_id.end_offset == -1


def test_the_records_of_a_formatted_directory_are_fetched_from_the_log():
    mechanism = MECHANISMS["SCRAM-SHA-256"]
    user = credential_record("alice", mechanism, salt=b"salt", salted=bytes(32), iterations=4096)
    bed = NodeBed([user])
    assert bed.node.log.snapshots.ids == [BOOTSTRAP]
    for _ in range(2):
        partition = bed.fetch(0, 0, max_wait_ms=300)
        assert partition.snapshot_id.end_offset == -1
        data = partition.records
        positions = [position for position, header in iter_batches(data) if not header.is_control]
        assert [decode(record.value) for position in positions for record in read_records(data, position)].count(user) == 1
        # A follower cannot begin at it.
        assert bed.fetch_snapshot(*BOOTSTRAP).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
        bed.restart()


def test_a_snapshot_is_fetched_in_parts():
    bed = small_snapshots()
    snapshot = bed.node.log.snapshots.ids[-1]
    whole = bed.file_system.read_bytes(bed.node.log.snapshots.path(snapshot))
    got = b""
    while len(got) < len(whole):
        part = bed.fetch_snapshot(*snapshot, len(got), max_bytes=100)
        assert (part.error_code, part.size, part.position) == (0, len(whole), len(got))
        assert 0 < len(part.unaligned_records) <= 100
        got += part.unaligned_records
    assert got == whole


def test_a_snapshot_that_is_not_there_or_a_position_behind_its_end_is_refused():
    bed = small_snapshots()
    end_offset, epoch = bed.node.log.snapshots.ids[-1]
    assert bed.fetch_snapshot(end_offset + 1, epoch).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    size = bed.fetch_snapshot(end_offset, epoch).size
    assert bed.fetch_snapshot(end_offset, epoch, size).error_code == ErrorCode.POSITION_OUT_OF_RANGE


def test_an_idle_controller_lets_the_log_grow_so_that_brokers_see_it_lives(bed):
    end_offset = bed.node.log.end_offset
    bed.clock.advance(500)
    assert bed.node.log.end_offset == end_offset + 1
    bed.clock.advance(400)
    change(bed)
    bed.clock.advance(100)
    # It was not idle.
    assert bed.node.log.end_offset == end_offset + 2
    bed.node.close()
    bed.clock.advance(5000)


def test_a_controller_that_is_never_idle_writes_nothing():
    bed = NodeBed(metadata_max_idle_interval_ms="0")
    end_offset = bed.node.log.end_offset
    bed.clock.advance(5000)
    assert bed.node.log.end_offset == end_offset


def test_a_controller_whose_disk_has_failed_ends(bed, monkeypatch):
    def fail(self):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(MemoryFile, "sync", fail)
    bed.clock.advance(499)
    assert bed.failures == []
    bed.clock.advance(1)
    assert bed.failures == ["the metadata log could not be written"]
    bed.clock.advance(5000)
    assert len(bed.failures) == 1
