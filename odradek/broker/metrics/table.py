"""The table of all metrics, the reading of all values, and docs/metrics.md.

python -m odradek.broker.metrics.table > docs/metrics.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from odradek.broker.metrics.broker import BROKER_SECTION, PURGATORY_SECTION, QUOTA_SECTION
from odradek.broker.metrics.groups import GROUP_SECTION, OFFSET_SECTION, SHARD_SECTION
from odradek.broker.metrics.partitions import CLEANER_SECTION, PARTITION_SECTION, REPLICATION_SECTION, TOPIC_SECTION
from odradek.broker.metrics.requests import AUTHENTICATION_SECTION, CONNECTION_SECTION, REQUEST_SECTION
from odradek.broker.metrics.shares import SHARE_STATE_SECTION
from odradek.broker.metrics.telemetry import TELEMETRY_SECTION
from odradek.broker.metrics.transactions import TRANSACTION_SECTION, TRANSACTION_SHARD_SECTION
from odradek.broker.network.route import TOTAL_TIME_BOUNDS_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading

SECTIONS = (
    REQUEST_SECTION,
    CONNECTION_SECTION,
    AUTHENTICATION_SECTION,
    QUOTA_SECTION,
    TOPIC_SECTION,
    PARTITION_SECTION,
    REPLICATION_SECTION,
    CLEANER_SECTION,
    GROUP_SECTION,
    OFFSET_SECTION,
    SHARD_SECTION,
    TRANSACTION_SECTION,
    TRANSACTION_SHARD_SECTION,
    SHARE_STATE_SECTION,
    PURGATORY_SECTION,
    TELEMETRY_SECTION,
    BROKER_SECTION,
)


def read_all(broker: MeteredBroker) -> list[Reading]:
    """Return the current values of all metrics. Loop thread only; the result may be passed to another thread."""
    return [reading for section in SECTIONS for reading in section.read(broker)]


_OPENING = """\
# Metrics

`odradek serve --http-port 9404` serves the metrics at `http://127.0.0.1:9404/metrics`, in Prometheus' text format or OpenMetrics.
[Operations](operations.md#metrics) shows how to scrape them, also by TLS and with a token.

If Kafka also has a metric, its name is the one that Prometheus' JMX exporter, configured as usual for Kafka, gives Kafka's MBean.
So dashboards and alerts work unchanged. All other names begin with `odradek_`.

Times are in milliseconds, unless a name says otherwise. Where Kafka has a rate, odradek has a counter; its `rate(...)` gives the
same figure. Counters begin at 0 when the broker starts. Those of coordinators are sums over the shards (partitions of
`__consumer_offsets` and so on) that this broker has loaded, and a shard's begin at 0 with each load. So they drop
when a shard moves away, which `rate` takes for a restart.

A histogram has `_bucket`, `_sum` and `_count`. A summary has no quantiles; its average is
`rate(..._sum[5m]) / rate(..._count[5m])`.

The process metrics (`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds` and so on) are those of
every Prometheus client. If `rate(process_cpu_seconds_total[1m])` is near 1, the broker's one thread is always busy, with requests
or with polling for the next one (`socket.busy.poll.us`).

This page is generated: `python -m odradek.broker.metrics.table > docs/metrics.md`.
"""


def document() -> str:
    """Return the whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    for section in SECTIONS:
        yield f"## {section.title}\n"
        yield "| metric and labels | type | in Kafka | meaning |"
        yield "|---|---|---|---|"
        for metric in section.metrics:
            labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
            mbean = f"`{metric.mbean}`" if metric.mbean else ""
            meaning = metric.help.removesuffix(", in ms.").removesuffix(".")
            yield f"| `{metric.shown_name}{labels}` | {metric.kind.value} | {mbean} | {meaning}. |"
        yield ""
    bounds = ", ".join(f"{bound:,}" for bound in TOTAL_TIME_BOUNDS_MS)
    yield f"The buckets of request times have the upper bounds {bounds} ms.\n"


if __name__ == "__main__":
    sys.stdout.write(document())
