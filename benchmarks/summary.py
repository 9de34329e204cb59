"""README's table: ``python -m benchmarks.summary COMPILED.json INTERPRETED.json``.

The files come from two runs: ``make bench ARGS="--json COMPILED.json"``, and the same with ``COMPILED=no``. Prints Markdown to
paste into README. Kafka's figures and the date are those of the first file.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.kafka_jars import VERSION
from benchmarks.report import REFERENCE, SUBJECT, quantity
from benchmarks.scenarios import START_TITLE

# (title and measure in the benchmarks' table, name in README)
ROWS = (
    (START_TITLE, "spawn to first record s", "start, to the first record produced and fetched: s"),
    (START_TITLE, "idle memory (PSS) MiB", "memory when idle: MiB"),
    ("produce 100 B", "records/s", "produce, records of 100 B in large batches: records/s"),
    ("consume 100 B", "records/s", "consume the same: records/s"),
    ("batches of 1, 8 producers", "requests/s", "produce, a record a request, 8 producers: requests/s"),
    ("latency, one in flight", "p50 ms", "from produce to consumer, one record in flight: p50 ms"),
    ("heartbeats, 8 groups", "requests/s", "heartbeats of 8 groups: requests/s"),
    ("commits, 8 groups", "requests/s", "offset commits of 8 groups: requests/s"),
    ("a group of 500", "join ms", "a group of 500 members joins: ms"),
    ("1 record a transaction, 16 producers", "transactions/s", "transactions of a record, 16 producers: transactions/s"),
    ("1 record a transaction, 1 producer", "transactions/s", "transactions of a record, 1 producer: transactions/s"),
    (
        "10 records and an offset a transaction, 16 producers",
        "transactions/s",
        "transactions of 10 records and an offset, 16 producers: transactions/s",
    ),
)
HEADER = ("figure", "Apache Kafka", "odradek", "odradek, compiled")
NOT_MEASURED = "-"


def markdown(compiled: Sequence[Mapping[str, object]], interpreted: Sequence[Mapping[str, object]], day: str) -> str:
    """The table of the figures that two runs wrote as JSON."""
    lines = [f"Measured on {day}, with Apache Kafka {VERSION}:", "", f"| {' | '.join(HEADER)} |", "|---|---:|---:|---:|"]
    for title, measure, name in ROWS:
        values = (
            _value(compiled, title, measure, REFERENCE),
            _value(interpreted, title, measure, SUBJECT),
            _value(compiled, title, measure, SUBJECT),
        )
        lines.append(f"| {' | '.join((name, *values))} |")
    return "\n".join(lines)


def _value(figures: Sequence[Mapping[str, object]], title: str, measure: str, broker: str) -> str:
    for figure in figures:
        values = figure["values"]
        if (figure["benchmark"], figure["measure"]) == (title, measure) and isinstance(values, dict):
            return quantity(values.get(broker))
    return NOT_MEASURED


def main(arguments: Sequence[str]) -> int:
    """Print the table; the exit status is 2 unless two files are named."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    paths = [Path(name) for name in arguments]
    compiled, interpreted = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    day = datetime.fromtimestamp(paths[0].stat().st_mtime, UTC).date().isoformat()
    print(markdown(compiled, interpreted, day))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
