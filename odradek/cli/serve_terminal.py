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
_DEFAULT_ADDRESSES: Final = ("localhost:9092", "127.0.0.1:9092")


def terminal_lines(
    core: "Broker", options: "ServeOptions", http: "ServedHttp | None", secured: "SecuredBroker | None"
) -> list[str]:
    """Return the lines about a broker that has started."""
    host, port = core.advertised(core.listener_names[0])
    address = f"{_shown_host(host)}:{port}"
    lines = [("Kafka", address)]
    if http is not None:
        lines.append(("Page" if http.has_page else "HTTP", http.url.replace("://127.0.0.1:", "://localhost:")))
        if options.http is not None and options.http.is_asked and http.generated_token is not None:
            lines.append(("Control", f"{lines[-1][1]}/v1  token {http.generated_token}"))
    lines.append(("Data", _data(core, options)))
    options_ = "" if address in _DEFAULT_ADDRESSES else f"-b {address} "
    if secured is not None:
        options_ += f"--command-config {_short_path(secured.files.client_properties)} "
    lines.append(("Try", f"odradek produce {options_}orders '{{\"total\": 12}}'     odradek consume {options_}orders"))
    return [f"odradek {__version__}", *(f"{name:{_WIDTH}}{text}" for name, text in lines)]


def _shown_host(host: str) -> str:
    if host in ("127.0.0.1", "::1"):
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _data(core: "Broker", options: "ServeOptions") -> str:
    if options.is_in_memory:
        return "in memory, gone when this stops"
    return f"{', '.join(_short_path(Path(path)) for path in log_dirs(core.config))}  (Kafka's own format)"


def _short_path(path: Path) -> str:
    """Return a path as a person writes it: from here, or from the home directory."""
    if path.is_relative_to(Path.cwd()):
        return f".{os.sep}{path.relative_to(Path.cwd())}"
    if path.is_relative_to(Path.home()):
        return f"~{os.sep}{path.relative_to(Path.home())}"
    return str(path)
