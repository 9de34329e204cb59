"""Writes docs/configuration.md from the table: ``python -m odradek.common.config.document > docs/configuration.md``."""

import sys
from collections.abc import Iterable, Iterator

from odradek.common.config.definitions import MAX_DOUBLE, MAX_INT, MAX_LONG, ConfigDefinition, Value, to_text
from odradek.common.config.table import BROKER_CONFIGS, SECTIONS, TOPIC_DEFINITIONS

_OPENING = """\
# Configuration

Set a config in a file in Kafka's format, with `--config server.properties`, or on the command line, with `--set key=value`, which
overrides the file. `--host`, `--port` and `--data-dir` override both.

You can change a config of the type *per-broker* or *cluster-wide* while the broker runs, for one broker or for all, with
`odradek configs`, `kafka-configs.sh` or any admin client. So you can the `ssl.` and SASL configs of one listener
([how](security.md#new-certificates)). Topic configs can always be altered. Such changes survive a restart.

The broker warns about an unlisted key and ignores it, so a `server.properties` written for Kafka works. With an invalid value of
a listed key, it doesn't start, and the exit status is 2.

Names, types, defaults and limits are those of Apache Kafka 4.4, except [these defaults](differences-all.md#other-defaults). *No
limit* is the largest value of the type.

This page is generated: `python -m odradek.common.config.document > docs/configuration.md`.
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
    yield "An unset topic config takes the value of the broker config under *falls back to*, and has its type, unless noted.\n"
    yield from _topic_table()


def _table(rows: Iterable[ConfigDefinition]) -> Iterator[str]:
    yield "| config | type | default | what it does |"
    yield "|---|---|---|---|"
    for row in rows:
        if not row.internal:
            kind = _type(row) if row.update_mode == "read-only" else f"{_type(row)}, *{row.update_mode}*"
            yield f"| `{row.name}` | {kind} | {_default(row.default)} | {row.documentation} |"
    yield ""


def _topic_table() -> Iterator[str]:
    yield "| config | default | falls back to | what it does |"
    yield "|---|---|---|---|"
    for row in TOPIC_DEFINITIONS:
        if not row.internal:
            broker_config = row.server_default and BROKER_CONFIGS[row.server_default]
            kind = "" if broker_config and _type(broker_config) == _type(row) else f" ({_type(row)})"
            name = f"`{row.server_default}`" if row.server_default else ""
            yield f"| `{row.name}` | {_default(row.default)} | {name} | {row.documentation}{kind} |"
    yield ""


def _type(row: ConfigDefinition) -> str:
    """The type and the rule for values: ``int, ≥ 1``."""
    kind = row.type.name.lower()
    if row.valid is None:
        return kind
    rule = row.valid.allowed.strip(", ").replace("at least ", "≥ ").removesuffix(", without empty entries")
    if rule.startswith("a list"):
        return rule.removeprefix("a ").removesuffix(" without empty entries").replace("list of ≥ 1", "list, not empty")
    return f"{kind}, {rule}"


def _default(value: Value) -> str:
    if value is None:
        return "unset"
    if value in ("", ()):
        return "empty"
    return "no limit" if value in _NO_LIMIT else f"`{to_text(value)}`"


if __name__ == "__main__":
    sys.stdout.write(document())
