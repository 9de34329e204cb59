"""A share of the campaign power-loss: the disk's model, and short workloads under each kind of fault."""

import asyncio
from random import Random
from uuid import uuid4

import pytest

from odradek.protocol.records import Record, build_batch
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.producer_state import ProducerStates
from tests.campaigns.power_loss import states, workload
from tests.campaigns.power_loss.disk import Operation, RecordingDisk
from tests.campaigns.power_loss.explore import Exploration
from tests.campaigns.power_loss.faults import TROUBLES, explore_faults, explore_faults_with_threads
from tests.campaigns.power_loss.flips import explore_flips
from tests.campaigns.power_loss.log_checks import check_keys
from tests.campaigns.power_loss.model import DiskModel
from tests.campaigns.power_loss.node import TWO_DIRECTORIES
from tests.campaigns.power_loss.seeded_faults import FAULTS, explored, find, scripted
from tests.campaigns.simulation.violation import Violation
from tests.memory_filesystem import MemoryFileSystem


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def modelled(disk):
    model = DiskModel({}, ["/d"])
    for operation in disk.operations:
        model.apply(operation)
    return model


def contents(state):
    return {path: content for path, content in state.items() if content is not None}


def left_after(disk):
    model = modelled(disk)
    return {left.what: contents(left.state) for left in states.after(model, disk.operations[-1])}


@pytest.fixture
def disk():
    return RecordingDisk(directories=["/d"])


def test_what_a_killed_process_wrote_is_there(disk):
    disk.open("/d/a", create=True).append([b"one", b"two"])
    disk.write_atomic("/d/b", b"whole", durable=False)
    assert left_after(disk)["kill"] == {"/d/a": b"onetwo", "/d/b": b"whole"}


def test_what_is_not_synced_goes_with_the_power_in_whole_or_in_part(disk):
    file = disk.open("/d/a", create=True)
    file.append([b"synced"])
    file.sync()
    disk.sync_dir("/d")
    file.append([b"not"])
    left = left_after(disk)
    assert left["nothing that is not synced"] == {"/d/a": b"synced"}
    model = modelled(disk)
    torn = [contents(each.state)["/d/a"] for each in states.within(model, Operation("append", "/d/a", file.number, b"xyz"))]
    assert torn[:2] == [b"syncednotx", b"syncednotxy"]


def test_a_name_that_is_not_synced_may_be_lost_though_its_file_is_synced(disk):
    file = disk.open("/d/a", create=True)
    file.append([b"synced"])
    file.sync()
    assert left_after(disk)["nothing that is not synced"] == {}


def test_a_file_that_is_replaced_durably_is_the_old_one_or_the_new(disk):
    disk.write_atomic("/d/a", b"old")
    disk.write_atomic("/d/a", b"new")
    model = DiskModel({}, ["/d"])
    seen = set()
    for operation in disk.operations:
        model.apply(operation)
        seen |= {contents(left.state).get("/d/a") for left in states.after(model, operation)}
    assert seen == {None, b"old", b"new"}
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b"new"}


def test_a_file_that_is_replaced_without_a_sync_may_be_torn_under_its_name(disk):
    disk.write_atomic("/d/a", b"new", durable=False)
    model = modelled(disk)
    rename = disk.operations[-1]
    assert {contents(left.state).get("/d/a") for left in states.after(model, rename)} >= {b"", b"n", b"ne", b"new", b"\0\0\0"}


def test_a_sync_that_failed_syncs_nothing_and_nothing_after_it_helps(disk):
    file = disk.open("/d/a", create=True)
    disk.sync_dir("/d")
    file.append([b"lost"])
    disk.operations.append(Operation("sync_lost", "/d/a", file.number))
    file.sync()
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b""}


def begun(disk, path, number=-1):
    """Begin a sync of a file or a directory; returns how to end it."""
    operation = Operation("sync" if number >= 0 else "sync_dir", path, number, begun=disk.begin_sync(path, number))
    return lambda: disk.note(operation)


def test_a_sync_counts_when_it_ends_and_for_what_there_was_when_it_began(disk):
    file = disk.open("/d/a", create=True)
    disk.sync_dir("/d")
    file.append([b"before"])
    end = begun(disk, "/d/a", file.number)
    file.append([b" meanwhile"])
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b""}
    end()
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b"before"}


def test_a_sync_that_began_earlier_and_ends_later_takes_nothing_back(disk):
    file = disk.open("/d/a", create=True)
    disk.sync_dir("/d")
    file.append([b"first"])
    end_first = begun(disk, "/d/a", file.number)
    file.append([b" second"])
    file.sync()
    end_first()
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b"first second"}


def test_a_truncation_during_a_sync_is_not_synced(disk):
    file = disk.open("/d/a", create=True)
    disk.sync_dir("/d")
    file.append([b"whole"])
    end = begun(disk, "/d/a", file.number)
    file.truncate(1)
    file.append([b"X"])
    end()
    left = left_after(disk)
    assert (left["nothing that is not synced"], left["a truncation"]) == ({"/d/a": b"whole"}, {"/d/a": b"wXole"})


def test_a_name_given_while_its_directory_is_synced_may_be_lost(disk):
    disk.open("/d/a", create=True)
    end = begun(disk, "/d")
    disk.open("/d/b", create=True)
    end()
    assert left_after(disk)["nothing that is not synced"] == {"/d/a": b""}


def test_a_directory_that_is_renamed_keeps_what_is_in_it(disk):
    disk.make_dirs("/d/e")
    disk.open("/d/e/a", create=True).append([b"data"])
    disk.rename("/d/e", "/d/f")
    assert left_after(disk)["kill"] == {"/d/f/a": b"data"}


@pytest.mark.parametrize("flush_messages", [1, None])
def test_nothing_that_was_promised_is_lost_with_the_power_or_by_a_kill(loop, flush_messages):
    exploration = Exploration(loop, workload.SHORT, flush_messages=flush_messages, every_bytes=40)
    tally = exploration.explore(range(0, len(exploration.operations), 16))
    assert not tally.findings
    assert sum(tally.points.values()) > 100


@pytest.mark.parametrize("flush_messages", [1, None])
def test_nothing_that_was_promised_is_lost_while_logs_are_compacted_and_moved(loop, flush_messages):
    exploration = Exploration(
        loop, workload.COMPACTING[:5], flush_messages=flush_messages, every_bytes=40, directories=TWO_DIRECTORIES
    )
    tally = exploration.explore(range(1, len(exploration.operations), 24))
    assert not tally.findings
    assert sum(tally.points.values()) > 100


@pytest.mark.parametrize("flush_messages", [1, None])
def test_a_disk_that_fails_or_is_full_costs_nothing_that_was_acknowledged(loop, flush_messages):
    tally = explore_faults(loop, flush_messages, TROUBLES, range(5, 100_000, 60))
    assert not tally.findings
    assert {fault for fault, _, _ in tally.points} == {trouble.name for trouble in TROUBLES}


def test_metadata_whose_sync_failed_is_not_missed_after_a_loss_of_power(loop):
    tally = explore_faults(loop, 1, TROUBLES[:1], range(1, 30, 6))
    assert not tally.findings
    assert tally.points["EIO once", "sync", "then nothing that is not synced"] > 1


@pytest.mark.parametrize("flush_messages", [1, None])
def test_a_disk_that_fails_under_threads_costs_nothing_that_was_acknowledged(loop, flush_messages):
    tally = explore_faults_with_threads(loop, flush_messages, map(str, range(20, 28)))
    assert not tally.findings
    assert sum(tally.points.values()) > 10


def test_a_flipped_bit_is_found_and_named_or_does_no_harm(loop):
    tally = explore_flips(loop, range(7, 100_000, 53))
    assert not tally.findings
    assert sum(tally.points.values()) > 200


def test_nothing_that_was_promised_is_lost_whatever_a_disk_is_left_with(loop):
    exploration = Exploration(loop, workload.draw_large(Random(1), 8), flush_messages=None)
    assert not exploration.explore_by_chance(Random(2), 100).findings


# 13 s on an idle machine, and five times as long beside other tests on a slow one.
@pytest.mark.timeout(180)
@pytest.mark.parametrize("flush_messages", [1, None])
def test_nothing_that_was_promised_is_lost_while_threads_sync_compact_move_and_remove(loop, flush_messages):
    exploration = explored(loop, 3, flush_messages)
    tally = exploration.explore_around(Random(4), 8)
    assert not tally.findings
    assert sum(tally.points.values()) > 50


@pytest.mark.parametrize("flush_messages", [1, None])
def test_nothing_that_was_promised_is_lost_when_the_power_goes_again_while_a_start_has_threads_at_work(loop, flush_messages):
    tally = explored(loop, 3, flush_messages).explore_starts(Random(4), 2)
    assert not tally.findings
    assert sum(tally.points.values()) > 20


def test_no_index_is_left_unsynced_below_the_recovery_point_though_a_flush_found_no_room_for_one(loop):
    tally = scripted(loop, workload.WITHOUT_ROOM, 1).explore_around(Random(4), 8)
    assert not tally.findings
    assert sum(tally.points.values()) > 50


def after_the_last_decision(loop):
    exploration = scripted(loop, workload.WITHOUT_MARKERS, None)
    operations = exploration.operations
    synced = [number for number, each in enumerate(operations) if each.kind == "sync" and "__transaction_state" in each.path]
    return exploration.explore(range(synced[-2], synced[-2] + 2))


def test_what_was_aborted_is_not_committed_by_the_next_transaction_though_its_marker_is_lost(loop):
    tally = after_the_last_decision(loop)
    assert not tally.findings
    assert tally.points["power loss", "sync", "nothing that is not synced"] == 1


@pytest.mark.interpreted
def test_a_commit_of_what_was_aborted_is_found_in_topics_and_in_the_offsets_of_groups(loop, monkeypatch):
    monkeypatch.setattr(ProducerStates, "left_open", lambda *_: None)
    invariants = {finding.violation.invariant for finding in after_the_last_decision(loop).findings}
    assert invariants == {"a transaction is there in all partitions or in none", "what was promised is there"}


def compacted_log(*records):
    manager = LogManager(MemoryFileSystem(), "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
    manager.start()
    log = manager.create("compacted", 0, uuid4(), LogConfig(cleanup_policy=("compact",)), now_ms=0)
    written = {}
    for key, value in records:
        record = Record(timestamp=0, key=key, value=value)
        written[log.log_end_offset] = {build_batch([record], base_offset=log.log_end_offset)}
        log.append(build_batch([record]), leader_epoch=0, now_ms=0)
    return log, written


def test_a_key_whose_promised_record_is_gone_is_found():
    log, _ = compacted_log((b"a", b"1"), (b"a", b"2"))
    with pytest.raises(Violation):
        check_keys(log, {b"b": [(0, False)]}, 2, {})


def test_a_tombstone_that_was_written_and_not_acknowledged_explains_that_its_key_is_gone():
    log, written = compacted_log((b"a", b"1"), (b"a", b"2"))
    tombstone = {1: {build_batch([Record(timestamp=0, key=b"b", value=None)], base_offset=1)}}
    check_keys(log, {b"b": [(0, False)]}, 2, written | tombstone)


@pytest.mark.parametrize("offset", [0, 2])
def test_a_tombstone_in_front_of_the_record_or_behind_the_end_of_the_log_explains_nothing(offset):
    log, written = compacted_log((b"a", b"1"), (b"a", b"2"))
    tombstone = {offset: {build_batch([Record(timestamp=0, key=b"b", value=None)], base_offset=offset)}}
    with pytest.raises(Violation):
        check_keys(log, {b"b": [(0, False)]}, 2, written | tombstone)


def test_a_seed_gives_the_same_operations_again_and_another_seed_others(loop):
    first, again, other = (explored(loop, seed, None).operations for seed in (5, 5, 6))
    assert first == again != other


def test_syncs_overlap_with_other_operations(loop):
    operations = explored(loop, 7, None).operations
    assert sum(each.begun >= 0 and operations[each.begun + 1] is not each for each in operations) > 20


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", FAULTS[::3], ids=lambda fault: fault.name)  # The campaign puts in all of them.
def test_a_fault_that_was_put_in_is_found(loop, fault):
    found = find(loop, fault, range(fault.seed, fault.seed + 6), 6)
    assert found is not None
    assert isinstance(found.violation, Violation)
