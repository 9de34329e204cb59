"""Chromium at the page of a broker in this process: one browser for all tests, with a profile for each."""

import os
from contextlib import asynccontextmanager
from pathlib import Path

from odradek.http.access import Access
from odradek.http.app import HttpApplication
from odradek.http.control.api import ControlApi
from odradek.http.port import HttpPort
from odradek.page.app import PageSite

TOKEN = "let me in"
# The machine may be busy.
WITHIN_MS = 60_000
# A directory for pictures of the page: see docs/page.md.
PICTURES = os.environ.get("ODRADEK_PAGE_PICTURES")
# The pictures in docs/images, and their heights.
IN_DOCS = {
    "overview": 1100,
    "topic": 560,
    "group": 860,
    "transactions": 400,
    "requests": 760,
    "cluster": 700,
    "levers": 640,
}


class ServedPage:
    """The page of one broker, at ``url``."""

    def __init__(self, broker, port):
        self.broker = broker
        self.port = port

    @property
    def url(self):
        return self.port.url


@asynccontextmanager
async def served_page(broker, *, port=0, is_read_only=False):
    control, http = ControlApi(broker), HttpPort()
    await http.bind("127.0.0.1", [port])
    site = PageSite(broker, control.held, TOKEN, is_read_only=is_read_only)
    http.serve(HttpApplication(control, Access(TOKEN), site).app)
    try:
        yield ServedPage(broker, http)
    finally:
        await http.close()
        await site.close()
        await control.close()


class Tab:
    """A page of the browser. Errors and warnings of its console are in ``complaints``."""

    def __init__(self, page, url):
        self.page = page
        self.url = url
        self.complaints = []
        page.set_default_timeout(WITHIN_MS)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def go(self, path="/"):
        await self.page.goto(self.url + path)

    async def rows(self, part):
        """The text of each cell of a part's tables, by row."""
        script = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        return await self.page.eval_on_selector_all(f"#{part} tbody tr", script)

    async def cells(self, part):
        """The cells of each row by the heads of their columns, by the first cell."""
        script = """part => {
            const found = {};
            for (const table of part.querySelectorAll("table")) {
                const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim());
                for (const row of table.tBodies[0].rows) {
                    const cells = [...row.cells].map(cell => cell.textContent.trim().replace(/\\s+/g, " "));
                    found[cells[0]] = Object.fromEntries(cells.map((text, index) => [heads[index], text]));
                }
            }
            return found;
        }"""
        return await self.page.eval_on_selector(f"#{part}", script)

    async def see(self, script, *arguments):
        """Wait until a JavaScript function of the page is true."""
        await self.page.wait_for_function(script, arg=list(arguments), timeout=WITHIN_MS)

    async def see_text(self, part, text):
        """Wait until a part has this text."""
        await self.page.locator(f"#{part}", has_text=text).wait_for(state="attached")

    async def assert_no_problem(self):
        assert await self.page.is_hidden("#problem"), await self.page.inner_text("#problem")

    async def confirm(self):
        """Press the button of the open question."""
        await self.page.locator("#ask-go").click()

    async def said(self):
        """The line that says what a change has done."""
        await self.page.wait_for_selector("#said:not(:empty)")
        return await self.page.inner_text("#said")

    async def picture(self, name):
        """Have pictures of the page, if they are wanted: at two widths, light and dark."""
        if PICTURES is None:
            return
        for width, height in ((400, 860), (1280, 860)):
            await self.page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                await self.page.emulate_media(color_scheme=scheme)
                await self.page.screenshot(path=Path(PICTURES, f"{name}-{width}-{scheme}.png"), full_page=True)
        await self.page.set_viewport_size({"width": 1280, "height": 860})
        await self.page.emulate_media(color_scheme="light")
        if name in IN_DOCS:
            await self.page.set_viewport_size({"width": 1280, "height": IN_DOCS[name]})
            await self.page.screenshot(path=Path(PICTURES, f"page-{name}.png"))
