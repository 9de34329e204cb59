"""Runs Apache Kafka's ``org.apache.kafka.tools.DumpLogSegments`` and parses its output.

The tool prints "Dumping FILE" and then a line for each entry of the file. It does not fail on an error, but prints other lines
in between. So every line must have one of the shapes below; any other line is a complaint.

    log         baseOffset: 0 lastOffset: 1 ... isvalid: true         a batch; each of its records:
                | offset: 0 ... key: {JSON} payload: {JSON}           decoded; plain text without a decoder
                | offset: 1 ... endTxnMarker: COMMIT coordinatorEpoch: 0
                offset: 0 position: 0 CreateTime: 1 ... magic: 1 ...  a message of format v0 or v1
    checkpoint  Snapshot end offset: 14, epoch: 1                     then as a log, with control records of its own:
                | offset: 0 ... SnapshotHeader {JSON}
    index       offset: 113 position: 4261
    timeindex   timestamp: 1795274764645 offset: 113
    txnindex    version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4
    snapshot    producerId: 0 producerEpoch: 0 ... currentTxnFirstOffset: OptionalLong.empty ...
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.campaigns.kafka_tools.kafka_tool import run_tool

_DUMPING = "Dumping "
_ALL_IS_WELL = re.compile(
    r"Log starting offset: \d+|Snapshot end offset: \d+, epoch: \d+|\S+ is empty\.|\S+ passed sanity check\."
)
# So the tool calls the first offset of a log that does not begin at 0.
_BEGINS_LATER = re.compile(r"Non-consecutive offsets in \S+\n  -1 is followed by \d+\n")
_FIELDS = re.compile(r"(\w+): (OptionalLong\[\d+\]|OptionalLong\.empty|\[[^\]]*\]|\S+)")
_MARKER = re.compile(r"(?P<record>\| offset: .*) endTxnMarker: (?P<kind>COMMIT|ABORT) coordinatorEpoch: (?P<epoch>\d+)")
_CONTROL = re.compile(r"(?P<record>\| offset: .*) (?P<kind>SnapshotHeader|SnapshotFooter|LeaderChange):? \{.*\}")
_RECORD = re.compile(r"(?P<record>\| offset: .*? headerKeys: \[.*?\])(?: key: (?P<key>.*?))?(?: payload: ?(?P<payload>.*))?")
_LEGACY = re.compile(r"offset: \d+ position: \d+ (?:NoTimestampType|CreateTime|LogAppendTime): -?\d+ size: \d+ magic: [01] ")
_ENTRIES = (
    re.compile(r"offset: \d+ position: \d+"),
    re.compile(r"timestamp: \d+ offset: \d+"),
    re.compile(r"version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+"),
    re.compile(r"producerId: \d+ producerEpoch: \d+ coordinatorEpoch: -?\d+ currentTxnFirstOffset: \S+ lastTimestamp: .*"),
)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a log.

    ``fields`` are its batch's and its own, as text. ``marker`` is the kind of a control record, COMMIT, ABORT,
    SnapshotHeader or SnapshotFooter. ``key`` and ``payload`` are
    text, or with a decoder what the JSON says; a payload of None is a tombstone.
    """

    fields: Mapping[str, str]
    key: Any = None
    payload: Any = None
    marker: str | None = None

    @property
    def offset(self) -> int:
        return int(self.fields["offset"])

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch."""
        return int(self.fields["producerId"]), int(self.fields["producerEpoch"])

    @property
    def is_transactional(self) -> bool:
        return self.fields["isTransactional"] == "true"


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """What is in one file: batches and their records in a log, entries (field: number or text) in any other."""

    batches: list[Mapping[str, str]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    entries: list[Mapping[str, str]] = field(default_factory=list)


def dump(files: Iterable[Path], *options: str) -> dict[Path, DumpedFile]:
    """Dump these files; fails if the tool complains."""
    names = [str(file) for file in files]
    assert names, "nothing to dump"
    done = run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(names), *options)
    assert (done.returncode, _BEGINS_LATER.sub("", done.stderr)) == (0, ""), done.stdout + done.stderr
    dumped = parse(done.stdout)
    assert [str(path) for path in dumped] == names
    return dumped


def parse(printed: str) -> dict[Path, DumpedFile]:
    """Parse the tool's output, file by file."""
    dumped: dict[Path, DumpedFile] = {}
    complaints = []
    file = DumpedFile()
    for line in printed.splitlines():
        if line.startswith(_DUMPING):
            file = dumped[Path(line.removeprefix(_DUMPING))] = DumpedFile()
        elif not _read_line(file, line):
            complaints.append(line)
    assert complaints == [], "\n".join(complaints)
    return dumped


def _read_line(file: DumpedFile, line: str) -> bool:
    """Add a line's content to the file; returns whether the line has a known shape and reports no error."""
    if line.startswith("baseOffset: ") or _LEGACY.match(line):
        batch = _fields(line)
        file.batches.append(batch)
        return batch["isvalid"] == "true"
    if (marker := _MARKER.fullmatch(line)) is not None:
        file.records.append(Record(file.batches[-1] | _fields(marker["record"]), marker=marker["kind"]))
        return True
    if (control := _CONTROL.fullmatch(line)) is not None:
        file.records.append(Record(file.batches[-1] | _fields(control["record"]), marker=control["kind"]))
        return True
    if (record := _RECORD.fullmatch(line)) is not None:
        fields = file.batches[-1] | _fields(record["record"])
        file.records.append(Record(fields, _decoded(record["key"]), _decoded(record["payload"])))
        return True
    if any(shape.fullmatch(line) for shape in _ENTRIES):
        file.entries.append(_fields(line))
        return True
    return _ALL_IS_WELL.fullmatch(line) is not None


def _fields(text: str) -> dict[str, str]:
    return dict(_FIELDS.findall(text))


def _decoded(text: str | None) -> Any:
    if text is not None and text.startswith("{"):
        return json.loads(text)
    return None if text == "<DELETE>" else text
