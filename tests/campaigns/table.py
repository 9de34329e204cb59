"""The campaigns: programs that take minutes, each with a short form that is among the tests.

What each does, and its short form, are in the table of tests/README.md.
"""

from typing import NamedTuple

from tests.broker_process import REPOSITORY
from tests.project.documents import table


class Campaign(NamedTuple):
    """One program. ``takes_min`` is wall time with its default arguments on two cores, in minutes."""

    name: str
    module: str
    arguments: tuple[str, ...]
    takes_min: float
    what: str
    # Tests, relative to the repository. Empty for a program that measures and checks nothing.
    short: tuple[str, ...]


# The time of each in minutes, its arguments, and its module where that is not named as it is.
_PROGRAMS: dict[str, tuple[float, str] | tuple[float, str, str]] = {
    "acl-differential": (25, "--sets 5000"),
    "assignor-differential": (2, "--inputs 20000"),
    "client-replay": (1, ""),
    "cluster-chaos": (12, ""),
    "controller-differential": (10, ""),
    "crash": (4, "--kills 20", "tests.campaigns.crash.kill9_groups"),
    "crash-points": (5, "", "tests.campaigns.crash.crash_points"),
    "crash-streams": (4, "--kills 10", "tests.campaigns.crash.kill9_streams"),
    "crash-topics": (2, "--kills 30", "tests.campaigns.crash.kill9_topics"),
    "damage": (3, ""),
    "faults-fuzz": (12, "", "tests.campaigns.faults"),
    "fuzz": (4, ""),
    "growing-out": (4, ""),
    "hostile-requests": (12, "--requests 1000"),
    "kafka-files": (8, "", "tests.campaigns.kafka_tools.both_ways"),
    "image-steps": (30, ""),
    "mixed-clusters": (8, ""),
    "pipeline-bench": (5, "--records 1000000", "benchmarks.pipeline"),
    "pipeline-cluster": (4, ""),
    "pipeline-differential": (4, ""),
    "pipeline-kills": (8, "--kills 10"),
    "power-loss": (25, ""),
    "quota-differential": (6, ""),
    "rolling-groups": (2, ""),
    "sasl-clusters": (14, ""),
    "sasl-differential": (5, ""),
    "security-fuzz": (9, ""),
    "simulate": (30, "--seeds 20000 --jobs 2", "tests.campaigns.simulation"),
    "simulate-cluster": (75, "--seeds 20000 --jobs 2 --mutations 600", "tests.campaigns.cluster_simulation"),
    "simulate-consumer-groups": (12, "--seeds 20000 --jobs 2 --mutations 1500", "tests.campaigns.simulation.consumer_groups"),
    "simulate-shares": (60, "--seeds 20000 --jobs 2 --mutations 150", "tests.campaigns.simulation.shares"),
    "soak": (6, "--minutes 5"),
    "task-assignor-differential": (6, "--inputs 20000"),
    "wire-differential": (8, ""),
    "year": (1, "--years 1"),
}


def _campaigns() -> dict[str, Campaign]:
    rows = {
        row["campaign"].strip("`"): (row["what it does"], row["short form"])
        for row in table(REPOSITORY / "tests" / "README.md", "campaign", "what it does", "short form")
    }
    found = {}
    for name, (takes_min, arguments, *module) in _PROGRAMS.items():
        what, short = rows.get(name, ("", "-"))
        tests = tuple(f"tests/{test.strip('`')}" for test in short.split(", ") if test != "-")
        where = module[0] if module else f"tests.campaigns.{name.replace('-', '_')}"
        found[name] = Campaign(name, where, tuple(arguments.split()), takes_min, what, tests)
    return found


CAMPAIGNS = _campaigns()
SHORT_TESTS = tuple(dict.fromkeys(test for campaign in CAMPAIGNS.values() for test in campaign.short))
