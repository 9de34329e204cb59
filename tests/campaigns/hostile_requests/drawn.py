"""What a kind of hostile requests draws."""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple


class Hostile(NamedTuple):
    """What a client sends, ``told`` in a few words."""

    told: str
    frames: tuple[bytes, ...]


def drawn_number(random: Random, weights: Mapping[int, int]) -> int:
    """One of the keys, as often as its weight says: seldom what takes seconds to be made and sent."""
    (drawn,) = random.choices(list(weights), list(weights.values()))
    return drawn


Draw = Callable[[Random], Hostile]
