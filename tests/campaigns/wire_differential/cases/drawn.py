"""What the scripts that are drawn from a seed have in common."""

import random

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey


class DrawnSteps:
    """Draws steps, whose acts are numbered."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0

    def _version(self, api_key: ApiKey, newest: int | None = None) -> int:
        """A version that is served, up to ``newest``."""
        served = SERVED[api_key]
        return self._rng.randint(served.min_version, served.max_version if newest is None else newest)

    def _label(self, what: str, who: str) -> str:
        return f"{self._number}: {who} {what}"
