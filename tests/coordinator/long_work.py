"""Long work of a coordinator, done at once."""

from collections.abc import Generator
from typing import Any, TypeVar

from odradek.timing.slices import Slices

T = TypeVar("T")


def finished(work: Generator[Any, Any, T]) -> T:
    """What ``work`` returns. Raises what it does."""
    response: Any = Slices(lambda: 0.0, lambda _: None).run(work).response
    if isinstance(response, Exception):
        raise response
    return response  # type: ignore[no-any-return]
