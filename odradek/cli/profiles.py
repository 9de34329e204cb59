"""``--profile``: servers and credentials under a name, so that nobody types them twice.

The profile file is ``profiles.toml`` in the user's configuration directory. Each table is a profile:

    default = "local"                       the profile of commands that name none

    [local]
    bootstrap = "localhost:9092"

    [production]
    bootstrap = "kafka-1:9093,kafka-2:9093"
    security.protocol = "SASL_SSL"          and any other config of --command-config

    [staging]
    bootstrap = "kafka-0:9093"
    command-config = "~/staging.properties" such a file in their place

The file is read only if a profile is named, or if it is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    from odradek.client.login import Login

_PROFILE: Final = "odradek.profile"


class InvalidProfile(click.ClickException):
    """The profile file cannot be used."""

    exit_code = 2


class Profile(NamedTuple):
    """A profile: its servers, if it has any, and the configs for connections, or their file."""

    bootstrap: str | None = None
    properties: Mapping[str, str] = {}
    command_config: Path | None = None


class CommandConfig(NamedTuple):
    """The TLS context and the login for connections; None if not used."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


def profile_file() -> Path:
    """Return the path of the profile file, which need not exist."""
    import platformdirs  # 5 ms

    return platformdirs.user_config_path("odradek") / "profiles.toml"


def take_profile(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Read the profile; the callback of the option. Raises InvalidProfile."""
    if not context.resilient_parsing:
        context.meta[_PROFILE] = read_profile(profile_file(), name)


def profile() -> Profile:
    """Return the profile of the running command."""
    context = click.get_current_context(silent=True)
    found: Profile = Profile() if context is None else context.meta.get(_PROFILE, Profile())
    return found


def read_profile(path: Path, name: str | None) -> Profile:
    """Return a profile, for None the file's default. Raises InvalidProfile."""
    try:
        text = path.read_text(encoding="utf-8")
        # After the file is read: most users have none.
        import tomllib

        content = tomllib.loads(text)
    except FileNotFoundError:
        if name is None:
            return Profile()
        raise InvalidProfile(f"there is no profile {name}: {path} does not exist") from None
    except (OSError, ValueError) as error:
        raise InvalidProfile(f"{path} cannot be read: {error}") from error
    name = content.get("default") if name is None else name
    if name is None:
        return Profile()
    found = content.get(name)
    if not isinstance(found, dict):
        known = ", ".join(key for key, value in content.items() if isinstance(value, dict)) or "none"
        raise InvalidProfile(f"there is no profile {name} in {path}; profiles: {known}")
    properties = dict(_flattened(found, ""))
    bootstrap, file = properties.pop("bootstrap", None), properties.pop("command-config", None)
    if file is not None and properties:
        raise InvalidProfile(
            f"profile {name} in {path} has a command-config, and {min(properties)} beside it: give one of the two"
        )
    return Profile(bootstrap, properties, None if file is None else Path(file).expanduser())


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield each config with its dotted name: ``a.b = 1`` is a table within a table in TOML."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else str(value)
