"""``--command-config``: how a command speaks to brokers, in a file as Kafka's own commands have it.

Of that file ``security.protocol`` counts, PLAINTEXT or SSL, and the ``ssl.`` configs. The rest of it is for others. The file is
read with the first connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

_FILE: Final = "odradek.command_config.file"
_TLS: Final = "odradek.command_config.tls"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL")


class CannotSpeak(click.ClickException):
    """What the file says cannot be done."""

    exit_code = 2


def take_command_config(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Callback of the option."""
    context.meta[_FILE] = path


def command_tls() -> ssl.SSLContext | None:
    """The context of TLS for the connections of the command that runs; None in the clear. Raises CannotSpeak."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(_FILE) is None:
        return None
    if _TLS not in context.meta:
        context.meta[_TLS] = _read(context.meta[_FILE])
    found: ssl.SSLContext | None = context.meta[_TLS]
    return found


def _read(path: Path) -> ssl.SSLContext | None:
    from odradek.broker.config.broker_config import InvalidConfig, load, parse_properties
    from odradek.broker.security.tls_context import client_context

    try:
        properties = parse_properties(path.read_text(encoding="utf-8"))
        protocol = properties.get("security.protocol", _PROTOCOLS[0]).upper()
        if protocol == "SSL":
            chosen = {name: value for name, value in properties.items() if name.startswith("ssl.")}
            return client_context(load(None, chosen).listener_config("SSL"))
    except UnicodeDecodeError:
        raise CannotSpeak(f"{path} is not UTF-8 text") from None
    except (InvalidConfig, OSError) as error:
        raise CannotSpeak(str(error)) from error
    if protocol not in _PROTOCOLS:
        raise CannotSpeak(str(InvalidConfig("security.protocol", protocol, f"one of {', '.join(_PROTOCOLS)}")))
    return None
