"""All scripts, by slice."""

from collections.abc import Iterable, Iterator
from itertools import chain

from tests.campaigns.wire_differential.cases import (
    consumers,
    edges,
    groups,
    quotas,
    reports,
    setup,
    spoilt,
    telemetry,
    transactions,
    valid,
)
from tests.campaigns.wire_differential.script import Script

SLICES = ("valid", "unknown", "bytes", "keys", "edges", "groups", "consumers", "transactions", "telemetry", "quotas", "reports")


def every(slices: Iterable[str], seeds: Iterable[int]) -> Iterator[Script]:
    """The scripts of these slices."""
    wanted, seeds = set(slices), list(seeds)
    drawn = chain(groups.scripts(seeds), consumers.scripts(seeds), transactions.scripts(seeds), quotas.scripts(seeds))
    for script in chain(valid.scripts(), spoilt.scripts(), edges.scripts(), drawn, telemetry.scripts(), reports.scripts()):
        if script.slice in wanted:
            yield script


def warm_up() -> Script:
    """What both brokers are sent before: their coordinators are loaded when it is answered."""
    return Script("warm-up", setup.always_there())
