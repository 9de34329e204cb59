"""Writes docs/configuration.md from the table: ``python -m odradek.common.config.document > docs/configuration.md``."""

import sys
from collections.abc import Iterable, Iterator

from odradek.common.config.definitions import MAX_DOUBLE, MAX_INT, MAX_LONG, ConfigDefinition, Value, to_text
from odradek.common.config.table import SECTIONS
from odradek.common.config.table_topic import TOPIC_DEFINITIONS

_OPENING = """\
# Configuration

Set a config in a file, with `--config server.properties` (the format is Kafka's), or on the command line, with
`--set key=value`. The command line overrides the file. `--host`, `--port` and `--data-dir` override both.

You can also change a *dynamic* config while the broker runs, for one broker or for the whole cluster. Use `kafka-configs.sh` or
any admin client. You set topic configs when you create a topic, and can alter them later. Dynamic and topic configs survive a
restart.

The broker warns about an unlisted key and ignores it. Some are configs of Apache Kafka that odradek has no use for, so you can
use a `server.properties` written for Kafka as it is. With an invalid value of a listed key, the broker doesn't start. The exit
status is then 2.

Names, types, defaults and limits are those of Apache Kafka 4.3. The last section lists every default that differs, and why.

This page is generated from the table in `odradek/common/config/`, by
`python -m odradek.common.config.document > docs/configuration.md`.
"""

_NO_LIMIT = (MAX_INT, MAX_LONG, MAX_DOUBLE)


def document() -> str:
    """Return the whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    yield "## Broker configs\n"
    for title, rows in SECTIONS:
        yield f"### {title}\n"
        yield from _table(rows)
    yield "## Topic configs\n"
    yield "An unset topic config takes the value of the broker config under *falls back to*.\n"
    yield from _table(TOPIC_DEFINITIONS)
    yield "## Differences from Kafka's defaults\n"
    yield "| config | odradek | Apache Kafka | why |"
    yield "|---|---|---|---|"
    for _, rows in SECTIONS:
        for row in rows:
            if row.kafka_default is not None:
                yield f"| `{row.name}` | {_default(row.default)} | {row.kafka_default} | {row.difference} |"
    yield ""


def _table(rows: Iterable[ConfigDefinition]) -> Iterator[str]:
    shown = [row for row in rows if not row.internal]
    topics = any(row.server_default is not None for row in shown)
    yield f"| config | type | default | allowed | {'falls back to' if topics else 'dynamic'} | what it does |"
    yield "|---|---|---|---|---|---|"
    for row in shown:
        allowed = "" if row.valid is None else row.valid.allowed
        last = (f"`{row.server_default}`" if row.server_default else "") if topics else _dynamic(row)
        yield f"| `{row.name}` | {row.type.name.lower()} | {_default(row.default)} | {allowed} | {last} | {row.documentation} |"
    yield ""


def _default(value: Value) -> str:
    if value is None:
        return "not set"
    if value in ("", ()):
        return "empty"
    return f"no limit (`{to_text(value)}`)" if value in _NO_LIMIT else f"`{to_text(value)}`"


def _dynamic(row: ConfigDefinition) -> str:
    return "" if row.update_mode == "read-only" else row.update_mode


if __name__ == "__main__":
    sys.stdout.write(document())
