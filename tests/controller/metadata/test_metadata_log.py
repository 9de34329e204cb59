"""The metadata log on storage's own log: what was appended is there after a crash, and a torn batch is not."""

import errno
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from odradek.controller.metadata.metadata_log import MAX_BATCH_BYTES, MetadataLog
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import ConfigRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.quorum_records import KRAFT_VOTERS, Voter
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import RealFile, RealFileSystem

NOW_MS = 1_700_000_000_000
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


def open_log(data_dir, warnings=None):
    return MetadataLog.open(
        RealFileSystem(),
        str(data_dir),
        now_ms=NOW_MS,
        warn=lambda event, **_: None if warnings is None else warnings.append(event),
    )


def topic(number):
    return [
        TopicRecord(name=f"t{number}", topic_id=UUID(int=number + 1)),
        ConfigRecord(resource_type=2, resource_name=f"t{number}", name="retention.ms", value="1"),
    ]


def batches(log):
    return [batch.records for batch in log.read_all()]


def test_a_new_log_has_no_records(tmp_path):
    log = open_log(tmp_path)
    assert (batches(log), log.end_offset) == ([], 0)


def test_batches_are_read_back_as_appended(tmp_path):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)
    log.append(topic(1), now_ms=NOW_MS)
    assert batches(log) == [topic(0), topic(1)]
    assert log.end_offset == 4


@pytest.mark.parametrize("crash", [True, False], ids=["killed", "closed"])
def test_what_was_appended_is_there_after_a_restart(tmp_path, crash):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)
    data_dir = tmp_path
    if crash:
        data_dir = Path(shutil.copytree(tmp_path, tmp_path / "copy"))
    else:
        log.close(now_ms=NOW_MS)
    assert batches(open_log(data_dir)) == [topic(0)]


def test_a_log_tells_of_its_voter_once_it_is_asked_to(tmp_path):
    log = open_log(tmp_path)
    log.append(topic(1), now_ms=1)
    with pytest.raises(KafkaError, match="not a voter"):
        log.append_voters(now_ms=1)
    log.voter = Voter(1, UUID(int=9), ())
    assert log.kraft_version == 0
    log.append_voters(now_ms=2)
    log.append(topic(2), now_ms=3)
    log.close(now_ms=4)
    again = open_log(tmp_path)
    assert batches(again) == [topic(1), topic(2)]
    assert again.kraft_version == 1
    assert again.quorum[KRAFT_VOTERS][1].hex() == f"0000 02 00000001 {UUID(int=9).hex} 01 0000 0001 00 00 00".replace(" ", "")


def test_a_torn_batch_is_gone_whole(tmp_path):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)
    whole = (tmp_path / SEGMENT).read_bytes()
    log.append(topic(1), now_ms=NOW_MS)
    both = (tmp_path / SEGMENT).read_bytes()
    for size in (len(whole), len(whole) + 1, len(whole) + 30, len(both) - 1):
        crashed = tmp_path / f"at-{size}"
        (crashed / SEGMENT).parent.mkdir(parents=True)
        (crashed / SEGMENT).write_bytes(both[:size])
        log = open_log(crashed)
        assert batches(log) == [topic(0)]
        log.append(topic(2), now_ms=NOW_MS)
        assert batches(open_log(crashed)) == [topic(0), topic(2)]


def test_damage_before_the_end_stops_the_start(tmp_path):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)
    log.append(topic(1), now_ms=NOW_MS)
    data = bytearray((tmp_path / SEGMENT).read_bytes())
    data[70] ^= 1
    (tmp_path / SEGMENT).write_bytes(data)
    with pytest.raises(LogCorrupt):
        open_log(tmp_path)


def test_a_log_larger_than_one_read_is_read_whole(tmp_path):
    log = open_log(tmp_path)
    big = [ConfigRecord(resource_type=4, resource_name="", name="n", value="v" * 700_000)]
    for _ in range(4):
        log.append(big, now_ms=NOW_MS)
    assert [len(batch) for batch in batches(log)] == [1, 1, 1, 1]


def test_a_batch_beyond_the_limit_is_refused_and_the_next_is_not(tmp_path):
    log = open_log(tmp_path)
    with pytest.raises(KafkaError) as caught:
        log.append([ConfigRecord(resource_type=4, resource_name="", name="n", value="v" * MAX_BATCH_BYTES)], now_ms=NOW_MS)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    log.append(topic(0), now_ms=NOW_MS)
    assert batches(log) == [topic(0)]


def test_after_a_failed_sync_nothing_more_is_written(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)

    def fail(*args, **kwargs):
        raise OSError(errno.EIO, "disk")

    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "sync", fail)
        with pytest.raises(KafkaError):
            log.append(topic(1), now_ms=NOW_MS)
    with pytest.raises(KafkaError) as caught:
        log.append([RemoveTopicRecord(topic_id=UUID(int=1))], now_ms=NOW_MS)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.synced_offset, log.end_offset) == (2, 4)
    assert batches(open_log(tmp_path))[0] == topic(0)


def test_what_a_killed_process_did_not_sync_is_synced_by_the_next(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "sync", lambda _: None)
        open_log(tmp_path).append(topic(0), now_ms=NOW_MS)
    synced = []
    sync = RealFile.sync
    monkeypatch.setattr(RealFile, "sync", lambda file: (synced.append(file.size()), sync(file)))
    log = open_log(tmp_path)
    assert (log.synced_offset, (tmp_path / SEGMENT).stat().st_size in synced) == (2, True)


def test_what_a_full_disk_refused_is_taken_when_there_is_room(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    log.append(topic(0), now_ms=NOW_MS)

    def fail(*args, **kwargs):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "append", fail)
        with pytest.raises(KafkaError):
            log.append(topic(1), now_ms=NOW_MS)
    log.append(topic(2), now_ms=NOW_MS)
    assert batches(open_log(tmp_path)) == [topic(0), topic(2)]
