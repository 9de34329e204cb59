"""Downloads: the bytes of a record's field, and the pipeline's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from odradek.page.facts.findings import report_bytes
from odradek.page.facts.records import raw_record
from odradek.page.facts.source import Missing
from odradek.page.views.topic import record_place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.page.views import Call

# The report has its scripts and styles in it. It gets an origin of its own, so it cannot act as the page's user.
_REPORT_POLICY: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
    " img-src data: blob:; frame-ancestors 'self'"
)


async def _bytes(call: Call) -> Response:
    """Return a record's key or value as it is. Raises FactError."""
    place = record_place(call)
    record = await raw_record(call.source, *place)
    field = "key" if call.query.text("field") == "key" else "value"
    found = record.key if field == "key" else record.value
    if found is None:
        raise Missing(f"this record's {field} is null")
    name = f"{field}-{place[1]}-{place[2]}.bin"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(bytes(found), media_type="application/octet-stream", headers=headers)


async def _report(call: Call) -> Response:
    """Return the pipeline's report. Raises FactError."""
    return Response(await report_bytes(call.source), media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})


FILES: Final[dict[str, Callable[[Call], Awaitable[Response]]]] = {"bytes": _bytes, "report": _report}
