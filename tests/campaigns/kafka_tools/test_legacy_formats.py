"""Logs of message formats v0 and v1 that odradek has recovered and cleaned: Apache Kafka's DumpLogSegments complains of nothing.

The campaign kafka-files has Apache Kafka's broker serve the same logs.
"""

import time

import pytest

from odradek.protocol.record_batch import iter_batches
from tests.campaigns.kafka_tools import legacy_formats
from tests.campaigns.kafka_tools import legacy_logs as logs
from tests.campaigns.kafka_tools.compaction import clean_by_odradek
from tests.campaigns.kafka_tools.dump_log_segments import dump

# One process: the jars are fetched where they are not in the cache, once.
pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("legacy") / "data"
    legacy_formats.recover(directory)
    for topic in logs.TOPICS:
        (directory / f"{topic}-0").mkdir()
    logs.write_logs(directory, time.time_ns() // 1_000_000)
    legacy_formats.recover(directory)
    return directory


def dumped(data, topics):
    """Dumps the .log files, and checks their indexes."""
    files = [file for topic in topics for file in legacy_formats.files_to_dump(data / f"{topic}-0")]
    dump([file for file in files if file.suffix != ".log"], "--index-sanity-check")
    return {path: file for path, file in dump(files).items() if path.suffix == ".log"}


def test_kafkas_tool_reads_old_logs_that_odradek_has_recovered(data):
    for path, file in dumped(data, logs.SERVED).items():
        ours = [(position, header.last_offset, header.magic) for position, header in iter_batches(path.read_bytes())]
        theirs = [(batch["position"], batch.get("lastOffset", batch.get("offset")), batch["magic"]) for batch in file.batches]
        assert [tuple(map(int, each)) for each in theirs] == ours


def test_nothing_of_an_old_log_was_cut_off_but_a_torn_message(data):
    for topic in logs.SERVED:
        for base_offset, content, _ in logs.segments_of(topic, 0):
            kept = (data / f"{topic}-0" / f"{base_offset:020d}.log").read_bytes()
            assert content.startswith(kept)
            assert len(content) - len(kept) < (400 if topic in logs.TORN else 1)


def test_kafkas_tool_reads_old_logs_that_odradek_has_cleaned(data):
    clean_by_odradek(data, legacy_formats.log_config)
    for path, file in dumped(data, logs.COMPACTED).items():
        assert {batch["magic"] for batch in file.batches} <= {"2"}, path
