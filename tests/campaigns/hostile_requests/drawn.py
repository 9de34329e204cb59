"""What a kind of hostile requests draws."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple


class Hostile(NamedTuple):
    """What a client sends, ``told`` in a few words."""

    told: str
    frames: tuple[bytes, ...]


Draw = Callable[[Random], Hostile]
