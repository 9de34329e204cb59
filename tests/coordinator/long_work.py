"""Long work of a coordinator, done at once."""

from odradek.timing.slices import Slices


def finished(work):
    """What ``work`` returns. Raises what it does."""
    response = Slices(lambda: 0.0, lambda _: None).run(work).response
    if isinstance(response, Exception):
        raise response
    return response
