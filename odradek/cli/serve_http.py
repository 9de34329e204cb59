"""The HTTP port of ``odradek serve``: bound before the start, served after it."""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from importlib import import_module
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final, Self

from odradek.cli.serve_options import Http
from odradek.common.config.broker_config import load
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import log
from odradek.http.access import Access
from odradek.http.control.api import ControlApi
from odradek.http.port import HttpPort
from odradek.page import LatePage
from odradek.timing.driver import OwnTasks

if TYPE_CHECKING:
    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.threaded import Broker

_IMPORTED_LATE: Final = ("uvicorn.config", "odradek.http.connection", "odradek.http.app")


class ServedHttp:
    """The port and its application. ``bind`` makes it."""

    def __init__(self, options: Http, port: HttpPort, hosts: frozenset[str]) -> None:
        self._options = options
        self._port = port
        self._access = Access(options.token or token_urlsafe(16), options.metrics_token, hosts)
        self._control: ControlApi | None = None
        self._page: LatePage | None = None
        self._serving: asyncio.Task[None] | None = None
        self._tasks = OwnTasks()

    @classmethod
    async def bind(cls, options: Http, settings: Mapping[str, str]) -> Self:
        """Bind the port. ``settings`` are the broker's. Raises InvalidConfig for the certificate, OSError."""
        context = None
        if options.certificate is not None:
            from odradek.cli.certificate_file import CertificateFile

            context = CertificateFile(options.certificate, "--http-certificate").context
        port = HttpPort(context)
        await port.bind(options.host, options.ports if options.is_asked else [*options.ports, 0])
        return cls(options, port, _names(options, settings))

    @property
    def url(self) -> str:
        """The URL of the port."""
        return self._port.url

    @property
    def has_page(self) -> bool:
        """False if the page is turned off."""
        return self._options.has_page

    @property
    def generated_token(self) -> str | None:
        """The token, if nobody has set it. One that was set is known to the user, and must not be printed."""
        return self._access.token if self._options.token is None else None

    @property
    def line(self) -> str:
        """The line with the URL and the token, for scripts."""
        return f"odradek http on {self.url}{'' if self.generated_token is None else f' token {self.generated_token}'}"

    def attach(self, broker: "Broker", rules: "Iterable[FaultKeywords]") -> None:
        """Let the port steer this broker, which has not started, and add the rules to it."""
        self._control = ControlApi(broker)
        self._control.add_faults(rules)

    def serve(self) -> None:
        """Answer requests from now on."""
        self._serving = asyncio.ensure_future(self._serve())
        if self._options.opens_browser:
            self._tasks.start(self._open_browser())

    async def close(self) -> None:
        """Close the port, and stop the forks. Idempotent."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait((self._serving,))
            self._serving = None
        await self._port.close()
        if self._page is not None:
            page, self._page = self._page, None
            await page.close()
        if self._control is not None:
            control, self._control = self._control, None
            await control.close()

    async def _serve(self) -> None:
        # Until somebody connects, the port needs none of these modules: a tenth of a second and 5 MiB.
        await self._port.first_connection()
        for name in _IMPORTED_LATE:
            await asyncio.to_thread(import_module, name)
        from odradek.http.app import HttpApplication

        if self._control is None:
            return
        if self._options.has_page:
            token, is_read_only = self._access.token, self._options.is_page_read_only
            self._page = LatePage(self._control, token, is_read_only=is_read_only)
        self._port.serve(HttpApplication(self._control, self._access, self._page).app)

    async def _open_browser(self) -> None:
        import webbrowser

        if not await asyncio.to_thread(webbrowser.open, self.url):
            log.warn("cannot open a browser: open the page yourself", url=self.url)


def _names(options: Http, settings: Mapping[str, str]) -> frozenset[str]:
    """Return the names by which the broker's own configs call this machine."""
    config = load(None, settings)
    advertised = parse_endpoints("advertised.listeners", config["advertised.listeners"] or ())
    endpoints = (*parse_endpoints("listeners", config["listeners"]), *advertised)
    names = (options.host, socket.gethostname(), *(endpoint.host for endpoint in endpoints))
    return frozenset(name.lower() for name in names if name)
