"""The files of odradek and of Apache Kafka, each opened by the other: ``python -m tests.campaigns.kafka_tools.both_ways``.

    odradek's by Kafka    DumpLogSegments reads every file of a directory with transactions of every kind (``ledger``), with the
                          decoders of the coordinators' and the controller's records and with its check of indexes
    Kafka's by odradek    every batch, index entry and producer of a directory that a Kafka broker wrote, including compacted logs
                          and the coordinators' (``kafka_written``, ``opened``)
    compacted by each     the same logs through both cleaners: the remaining records, a consumer's view of them and the state that
                          the coordinators load are the same, and DumpLogSegments reads odradek's result (``compaction``)

    old formats           messages of formats v0 and v1: both serve, move, replicate and compact the same logs
                          (``legacy_formats``, ``legacy_replicas``)

``growing_out`` has each of them serve what the other wrote.

Prints the files checked by kind and the differences. The exit status is 1 if there are any.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.campaigns.kafka_tools import ledger
from tests.campaigns.kafka_tools.cleaned import CleanedComparison
from tests.campaigns.kafka_tools.compaction import compare_compaction
from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.kafka_tools.kafka_written import kafka_data_directory
from tests.campaigns.kafka_tools.legacy_formats import compare_legacy_formats
from tests.campaigns.kafka_tools.legacy_replicas import compare_replicas
from tests.campaigns.kafka_tools.opened import compare

_READ = (
    ("__transaction_state", "--transaction-log-decoder"),
    ("__consumer_offsets", "--offsets-decoder"),
    ("__cluster_metadata", "--cluster-metadata-decoder"),
    (ledger.TOPIC, "--print-data-log"),
)
_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
_INDEXES = (".index", ".timeindex")


def odradek_by_kafka(scratch: Path) -> tuple[Counter[str], list[str]]:
    """(files by kind, complaints of Kafka's tool)."""
    directory = ledger.write_ledger(scratch / "odradek")
    files: Counter[str] = Counter()
    complaints = []
    for topic, option in _READ:
        for suffixes, options in ((_SUFFIXES, (option,)), (_INDEXES, ("--index-sanity-check",))):
            there = directory.files(topic, *suffixes)
            try:
                dump(there, *options)
            except AssertionError as complaint:
                complaints.append(str(complaint))
            files.update(path.suffix for path in there if options == (option,))
    return files, complaints


def main() -> int:
    """Both ways; the exit status."""
    argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=(__doc__ or "").partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-both-ways-") as scratch:
        files, differences = odradek_by_kafka(Path(scratch))
        print(f"written by odradek, read by Kafka's DumpLogSegments: {_counts(files)}; differences {len(differences)}")
        with kafka_data_directory() as data:
            comparison = compare(data, Path(scratch))
    print(
        f"written by Kafka, opened by odradek: {_counts(comparison.files)}; {comparison.batches} batches, "
        f"{comparison.entries} index entries; differences {len(comparison.differences)}"
    )
    differences += comparison.differences
    with tempfile.TemporaryDirectory(prefix="odradek-compaction-") as scratch:
        compacted = compare_compaction(Path(scratch))
    _tell_compaction(compacted)
    differences += compacted.differences
    differences += _old_formats()
    for difference in differences:
        print(difference, file=sys.stderr)
    checked = sum(files.values()) + sum(comparison.files.values()) + compacted.dumped_files
    print(f"files checked {checked}, differences {len(differences)}")
    return 1 if differences else 0


def _old_formats() -> list[str]:
    """Compare what both make of messages in formats v0 and v1; the differences."""
    with tempfile.TemporaryDirectory(prefix="odradek-legacy-") as scratch:
        served = compare_legacy_formats(Path(scratch))
    print(f"formats v0 and v1, by odradek and by Kafka: {_counts(served.counts)}; differences {len(served.differences)}")
    with tempfile.TemporaryDirectory(prefix="odradek-replicas-") as scratch:
        replicas = compare_replicas(Path(scratch))
    print(
        f"formats v0 and v1, on leader and follower: {replicas.partitions} partitions, {replicas.records} bytes; "
        f"differences {len(replicas.differences)}"
    )
    return [*served.differences, *replicas.differences]


def _tell_compaction(compacted: CleanedComparison) -> None:
    print(
        f"compacted by odradek and by Kafka: {compacted.partitions} partitions, {compacted.records_before} records before and "
        f"{compacted.records} after, {compacted.batches} batches, {compacted.empty_batches} empty ones, "
        f"{compacted.markers} markers, {compacted.horizons} delete horizons, {compacted.shards} coordinator shards; "
        f"{compacted.consumed_records} records read from Kafka on odradek's; {compacted.dumped_files} files read by "
        f"DumpLogSegments; differences {len(compacted.differences)}"
    )


def _counts(files: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(files.items()))


if __name__ == "__main__":
    sys.exit(main())
