"""Writes docs/metrics.md from the table: ``python -m odradek.broker.metrics.document > docs/metrics.md``."""

import sys
from collections.abc import Iterator

from odradek.broker.metrics.table import SECTIONS
from odradek.broker.network.route import TOTAL_TIME_BOUNDS_MS

_OPENING = """\
# Metrics

This page is generated from the tables in `odradek/broker/metrics/`, by
`python -m odradek.broker.metrics.document > docs/metrics.md`.

`odradek serve --metrics-port 9404` serves them at `http://HOST:9404/metrics`, in Prometheus' text format or as OpenMetrics,
whichever the scraper asks for. They are off without that option. How to use it: [operations](operations.md#metrics).

A metric that Kafka has too bears the name that Prometheus' JMX exporter makes of Kafka's MBean with the configuration usual for
Kafka, so that dashboards and alerts find it; one that Kafka does not have begins with `odradek_`. Times are in milliseconds.
Where Kafka has a rate, there is a counter here: `rate(...)` of it is the same. Counters begin at 0 when the broker starts.

A histogram has `_bucket`, `_sum` and `_count`; a summary has `_sum` and `_count`, and no quantiles: an average is
`rate(..._sum[5m]) / rate(..._count[5m])`. The figures of the process (`process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_open_fds` and so on) are those every Prometheus client has. The broker works in one
thread: `rate(process_cpu_seconds_total[1m])` near 1 means that it is busy all the time, or that it looks
for what comes next between the requests of clients that come back at once (`socket.busy.poll.us`).
"""


def document() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    for section in SECTIONS:
        yield f"## {section.title}\n"
        yield "| metric | type | labels | in Kafka | what it says |"
        yield "|---|---|---|---|---|"
        for metric in section.metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            mbean = f"`{metric.mbean}`" if metric.mbean else ""
            yield f"| `{metric.shown_name}` | {metric.kind.value} | {labels} | {mbean} | {metric.help} |"
        yield ""
    yield f"The buckets of request times end at {', '.join(f'{bound:,}' for bound in TOTAL_TIME_BOUNDS_MS)} ms.\n"


if __name__ == "__main__":
    sys.stdout.write(document())
