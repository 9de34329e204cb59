"""The broker's process that dies at a point.

    python -m tests.campaigns.crash.points.broker POINT NUMBER serve ...

is ``odradek serve`` with one function wrapped before it begins: see ``places``. With ``all`` for a point, it comes to the places
of this number of all points, tells each, and lives on.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from odradek.__main__ import start
from tests.broker_process import BrokerProcess
from tests.campaigns.crash.points.places import REACHED, arm, tell, watch
from tests.campaigns.crash.points.points import BY_NAME, POINTS

if TYPE_CHECKING:
    from tests.campaigns.crash.points.points import CrashPoint

DEATH_TIMEOUT_S = 10.0
ALL = "all"


class DyingBroker(BrokerProcess):
    """A broker that, while it is ``armed``, dies at one of a point's places."""

    def arm(self, point: CrashPoint, number: int) -> None:
        """Make the next start die at the point's place of this number."""
        self.program = ("-m", __name__, point.name, str(number))

    def watch(self, number: int) -> None:
        """Make the next start tell which points' places of this number it comes to (``reached``), and not die."""
        self.program = ("-m", __name__, ALL, str(number))

    @property
    def reached(self) -> list[str]:
        """The places that were come to, in order: the point's name and the place's number."""
        return [line.removeprefix(REACHED) for line in self.stderr.splitlines() if line.startswith(REACHED)]

    def disarm(self) -> None:
        """Make the next start an ordinary one."""
        self.program = BrokerProcess.program

    def ensure_killed(self, point: CrashPoint, number: int) -> None:
        """Wait for the end; AssertionError unless it was a SIGKILL at the place of this number."""
        try:
            status = self.wait_ended(DEATH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"the broker did not come to {point.places[number]}; it logged:\n{self.stderr}") from None
        assert status == -signal.SIGKILL, f"the broker ended with status {status}; it logged:\n{self.stderr}"
        assert self.reached == [f"{point.name} {place}" for place in range(number + 1)], f"killed, but at {self.reached}"


def main() -> None:
    """Arm the place, or watch all of them, then run the command."""
    name, number = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    if name == ALL:
        places = {f"{point.name} {number}": point.places[number] for point in POINTS if number < len(point.places)}
        watch(places, lambda place, _arguments: tell(place))
    else:
        arm(f"{name} {number}", BY_NAME[name].places[number])
    start()


if __name__ == "__main__":
    main()
