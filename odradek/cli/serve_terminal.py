"""The lines of ``odradek serve`` for a person: what runs where, and what to try."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek import __version__
from odradek.broker.start.storage_start import log_dirs

if TYPE_CHECKING:
    from odradek.broker.start.server import Broker
    from odradek.cli.secure import SecuredBroker
    from odradek.cli.serve_http import ServedHttp
    from odradek.cli.serve_options import ServeOptions

_WIDTH: Final = 14
_USUAL: Final = ("localhost:9092", "127.0.0.1:9092")


def told_on_terminal(
    core: "Broker", options: "ServeOptions", http: "ServedHttp | None", door: "SecuredBroker | None"
) -> list[str]:
    """Return the lines about a broker that has started."""
    host, port = core.advertised(core.listener_names[0])
    address = f"{_shown(host)}:{port}"
    told = [("Kafka", address)]
    if http is not None:
        told.append(("Page", http.url.replace("://127.0.0.1:", "://localhost:")))
        if options.http is not None and options.http.is_asked and http.drawn_token is not None:
            told.append(("Control", f"{told[-1][1]}/v1  token {http.drawn_token}"))
    told.append(("Data", _data(core, options)))
    reach = "" if address in _USUAL else f"-b {address} "
    if door is not None:
        reach += f"--command-config {_near(door.files.client_properties)} "
    told.append(("Try", f"odradek produce {reach}orders '{{\"total\": 12}}'     odradek consume {reach}orders"))
    return [f"odradek {__version__}", *(f"{name:{_WIDTH}}{text}" for name, text in told)]


def _shown(host: str) -> str:
    if host in ("127.0.0.1", "::1"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _data(core: "Broker", options: "ServeOptions") -> str:
    if options.is_in_memory:
        return "in memory, gone when this stops"
    return f"{', '.join(_near(Path(path)) for path in log_dirs(core.config))}  (Kafka's own format)"


def _near(path: Path) -> str:
    """Return a path as a person writes it: from here, or from the home directory."""
    if path.is_relative_to(Path.cwd()):
        return f".{os.sep}{path.relative_to(Path.cwd())}"
    if path.is_relative_to(Path.home()):
        return f"~{os.sep}{path.relative_to(Path.home())}"
    return str(path)
