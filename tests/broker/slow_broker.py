"""A broker whose long work takes many turns of the loop."""

from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock


class SlowClock(VirtualClock):
    """Each reading takes a millisecond, so that no slice does much."""

    def monotonic_ms(self):
        self._monotonic_ms += 1
        return self._monotonic_ms


def slow_broker():
    """It is to be entered."""
    return SocketlessBroker(clock=SlowClock(), seed=1)
