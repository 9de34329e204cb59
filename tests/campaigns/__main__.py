"""Runs a campaign: ``python -m tests.campaigns [NAME [ARGUMENT ...]]``, or ``make campaign NAME=... ARGS=...``.

Without a name it lists the campaigns. ``all-short`` runs the short form of each, as the tests do. Arguments follow a
campaign's own defaults and override them; ``NAME --help`` lists them.
"""

import os
import sys

from tests.campaigns.table import CAMPAIGNS, SHORT_TESTS, Campaign

ALL_SHORT = "all-short"


def main(arguments: list[str]) -> int:
    """List the campaigns (0), complain of an unknown name (2), or become the campaign's process."""
    if not arguments:
        print(listing())
        return 0
    name, *more = arguments
    if name != ALL_SHORT and name not in CAMPAIGNS:
        print(f"There is no campaign {name!r}.\n\n{listing()}", file=sys.stderr)
        return 2
    command = _short(more) if name == ALL_SHORT else _whole(CAMPAIGNS[name], more)
    sys.stdout.flush()
    return os.execv(command[0], command)


def listing() -> str:
    """A line for each campaign."""
    lines = [f"  {campaign.name:<22} {campaign.takes_min:>3g} min  {campaign.what}" for campaign in CAMPAIGNS.values()]
    lines.append(f"  {ALL_SHORT:<22} {3:>3g} min  the short form of each, which are among the tests")
    return "\n".join(["make campaign NAME=... [ARGS=...]; ARGS=--help lists a campaign's arguments:", "", *lines])


def _whole(campaign: Campaign, more: list[str]) -> list[str]:
    return [sys.executable, "-m", campaign.module, *campaign.arguments, *more]


def _short(more: list[str]) -> list[str]:
    # Appended, so that the sources beside the tests do not come before the compiled build (make campaign-compiled).
    return [sys.executable, "-m", "pytest", "--import-mode=append", "-n", "3", "--dist", "loadgroup", *SHORT_TESTS, *more]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
