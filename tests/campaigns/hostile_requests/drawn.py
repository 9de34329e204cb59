"""What a kind of hostile requests draws, and how a client sends it."""

import enum
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple


class Manner(enum.Enum):
    """How the clients of one hostile request go about it."""

    # Send each frame when the one before is answered.
    IN_TURN = enum.auto()
    # Keep each connection full of the frame, and read what is answered.
    FLOOD = enum.auto()
    # Send the frame once, and read some KiB of the answer a second.
    SLOWLY = enum.auto()


class Hostile(NamedTuple):
    """What one client sends, ``told`` in a few words, by so many connections, for ``lasts_s`` if it is not sent in turn.

    ``needs`` names what has to be there for it (``found``); ``answers_bytes`` is what its answers may take beside the request.
    """

    told: str
    frames: tuple[bytes, ...]
    needs: str | None = None
    manner: Manner = Manner.IN_TURN
    connections: int = 1
    lasts_s: float = 0
    answers_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """All that is sent; of a flood what one turn of it has."""
        return self.connections * sum(map(len, self.frames))


def drawn_number(random: Random, weights: Mapping[int, int]) -> int:
    """One of the keys, as often as its weight says: seldom what takes seconds to be made and sent."""
    (drawn,) = random.choices(list(weights), list(weights.values()))
    return drawn


Draw = Callable[[Random], Hostile]
