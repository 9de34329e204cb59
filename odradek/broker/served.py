"""How an API is served: what a row of the table of handlers says, and what dispatch reads of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

# ``handle(services, context, request)``: the response, a Reply of it, NO_RESPONSE or CLOSE_CONNECTION (``broker.context``).
Handler = Callable[[Any, Any, Any], Any]


class Served(NamedTuple):
    """An API in the versions served, both ends included.

    ``advertised_min`` is what ApiVersions says where that is lower than what is really served.

    ``pipeline_depth`` is how many requests of a connection may be unanswered once one of this API has begun, itself included.
    With 1 it begins when all before it are answered. With more it may begin behind requests whose Reply ``is_decided``.
    """

    min_version: int
    max_version: int
    advertised_min: int
    pipeline_depth: int = 1
