"""Checks across configs, which no single config's validator can do. The rules are those of Kafka's ``validateValues``.

``group.consumer.assignors`` names odradek's own assignors, and those that other packages register as entry points of the group
``odradek.assignors``. An entry point has the assignor's name; its object is a function as described by
``coordinator.group.assignor.spec.Assign``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.endpoints import check_listeners, per_ip_overrides
from odradek.common.config.table_server import MOST_REQUEST_BYTES
from odradek.common.config.topic_config import check_defaults

_KEY = "group.consumer.assignors"
OWN = ("uniform", "range")
ENTRY_POINTS = "odradek.assignors"


def third_party_assignors(names: Iterable[str]) -> Mapping[str, Callable[[Any], Any]]:
    """Load the assignors of ``names`` that are not odradek's own. Raises InvalidConfig if one cannot be loaded."""
    others = [name for name in names if name not in OWN]
    if not others:
        return {}
    from importlib.metadata import entry_points

    registered = entry_points(group=ENTRY_POINTS)
    found = {}
    for name in others:
        points = list(registered.select(name=name))
        if len(points) != 1:
            known = ", ".join(sorted(registered.names)) or "none"
            count = f"; {len(points)} have this name" if points else ""
            raise InvalidConfig(_KEY, name, f"{', '.join(OWN)} or an entry point in {ENTRY_POINTS} (there are: {known}{count})")
        where = points[0].value
        try:
            loaded = points[0].load()
        except Exception as failure:
            raise InvalidConfig(_KEY, name, f"an entry point that can be loaded: {where}: {failure!r}") from failure
        if not callable(loaded):
            raise InvalidConfig(_KEY, name, f"an entry point that is a function: {where} is of type {type(loaded).__name__}")
        found[name] = loaded
    return found


_MIB = 1024 * 1024


def check(values: Mapping[str, Any]) -> None:
    """Check the values across configs. Raises InvalidConfig, which names the config that is most likely wrong."""
    check_listeners(values)
    _check_connections(values)
    _check_retention(values)
    check_defaults(values)
    third_party_assignors(values["group.consumer.assignors"])
    if values["log.cleaner.dedupe.buffer.size"] // values["log.cleaner.threads"] <= _MIB:
        raise InvalidConfig(
            "log.cleaner.dedupe.buffer.size",
            str(values["log.cleaner.dedupe.buffer.size"]),
            "more than 1 MiB for each of log.cleaner.threads",
        )


def _check_connections(values: Mapping[str, Any]) -> None:
    exceptions = per_ip_overrides(values["max.connections.per.ip.overrides"])
    if values["max.connections.per.ip"] == 0 and not exceptions:
        raise InvalidConfig("max.connections.per.ip", "0", "at least 1 if max.connections.per.ip.overrides is not set")
    max_bytes = values["queued.max.request.bytes"]
    # With our default, a configuration made for Kafka behaves as with Kafka's default, -1.
    if 0 < max_bytes < values["socket.request.max.bytes"] and max_bytes != MOST_REQUEST_BYTES:
        raise InvalidConfig(
            "queued.max.request.bytes",
            str(max_bytes),
            "at least socket.request.max.bytes, or not positive for no limit",
        )


def _check_retention(values: Mapping[str, Any]) -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values[name] is not None:
            if values[name] == 0:
                raise InvalidConfig(name, "0", "at least 1, or -1 to keep records for ever")
            return
