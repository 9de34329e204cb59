"""``--command-config``: connection settings of a command, in a file as Kafka's own commands take it.

These configs are used: ``security.protocol``, the ``ssl.`` configs for TLS, and for SASL ``sasl.mechanism`` and
``sasl.jaas.config``, with PLAIN and SCRAM, or with a delegation token by SCRAM's option ``tokenauth=true``. All others are
ignored. The file is read at the first connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import click

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from pathlib import Path

    from odradek.client.login import Login

_FILE: Final = "odradek.command_config.file"
_READ: Final = "odradek.command_config.read"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class CannotSpeak(click.ClickException):
    """The file's settings cannot be used."""

    exit_code = 2


class CommandConfig(NamedTuple):
    """The TLS context and the login for connections; None if not used."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


def take_command_config(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Store the path; the callback of the option."""
    context.meta[_FILE] = path


def command_config() -> CommandConfig:
    """Return the config of the running command. Raises CannotSpeak."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(_FILE) is None:
        return CommandConfig()
    if _READ not in context.meta:
        context.meta[_READ] = read_command_config(context.meta[_FILE])
    found: CommandConfig = context.meta[_READ]
    return found


def read_command_config(path: Path) -> CommandConfig:
    """Read a file. Raises CannotSpeak."""
    from odradek.common.config.broker_config import InvalidConfig, parse_properties

    try:
        properties = parse_properties(path.read_text(encoding="utf-8"))
        protocol = _protocol(properties)
        tls = _tls(properties) if protocol.endswith("SSL") else None
        return CommandConfig(tls, _login(properties) if protocol.startswith("SASL_") else None)
    except UnicodeDecodeError:
        raise CannotSpeak(f"{path} is not UTF-8 text") from None
    except (InvalidConfig, OSError) as error:
        raise CannotSpeak(str(error)) from error


def _protocol(properties: Mapping[str, str]) -> str:
    """Return the security protocol. Raises InvalidConfig."""
    from odradek.common.config.definitions import InvalidConfig

    protocol = properties.get("security.protocol", _PROTOCOLS[0]).strip().upper()
    if protocol not in _PROTOCOLS:
        raise InvalidConfig("security.protocol", protocol, f"one of {', '.join(_PROTOCOLS)}")
    return protocol


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context. Raises InvalidConfig."""
    from odradek.broker.security.tls.key_stores import load_key_store
    from odradek.broker.security.tls.tls_context import client_context
    from odradek.common.config.broker_config import load

    chosen = {name: value for name, value in properties.items() if name.startswith("ssl.")}
    config = load(None, chosen).listener_config("SSL")
    return client_context(config, load_key_store(config))


def _login(properties: Mapping[str, str]) -> Login:
    """Return the login. Raises InvalidConfig."""
    from odradek.broker.security.sasl.jaas import JaasError, parse_jaas
    from odradek.client.login import PLAIN, Login
    from odradek.common.config.definitions import HIDDEN, InvalidConfig
    from odradek.protocol.scram import MECHANISMS

    mechanisms = (PLAIN, *MECHANISMS)
    mechanism = properties.get("sasl.mechanism", "").strip()
    if mechanism not in mechanisms:
        raise InvalidConfig("sasl.mechanism", mechanism, f"one of {', '.join(mechanisms)}")
    try:
        options = parse_jaas(properties.get("sasl.jaas.config", "")).options
        by_token = mechanism != PLAIN and options.get("tokenauth", "").lower() == "true"
        return Login(mechanism, options["username"], options["password"], by_token)
    except JaasError as error:
        raise InvalidConfig("sasl.jaas.config", HIDDEN, f"a JAAS line: {error}") from error
    except KeyError as error:
        raise InvalidConfig("sasl.jaas.config", HIDDEN, f"a JAAS line with username and password: no {error.args[0]}") from error
