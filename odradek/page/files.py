"""What a browser fetches or saves beside the views: a record, a request with its answer, the pipeline's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response

    from odradek.page.views import Call

FILES: Final[dict[str, Callable[[Call], Awaitable[Response]]]] = {}
