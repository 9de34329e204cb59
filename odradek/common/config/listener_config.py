"""The configs of one listener: ``listener.name.<listener>.<config>``, else the broker's.

A listener with SASL also has configs for each mechanism:

    listener.name.<listener>.<mechanism>.<config>    of one mechanism there, else
    listener.name.<listener>.<config>                of the listener, else
    <config>                                         of the broker

Listeners and mechanisms are in lower case in these keys, as in Kafka.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from odradek.common.config.definitions import HIDDEN, InvalidConfig, Value, parse, to_text
from odradek.common.config.endpoints import SASL_SSL, security_protocols
from odradek.common.config.table import BROKER_CONFIGS, BROKER_DEFAULTS
from odradek.common.config.table_security import SASL, SSL_NAMES

PREFIX: Final = "listener.name."
_OF_LISTENERS: Final = SSL_NAMES


def listener_key(listener: str, name: str) -> str:
    """Return the key that sets a config for one listener."""
    return f"{PREFIX}{listener.lower()}.{name}"


def is_of_listeners(key: str) -> bool:
    """Return whether ``key`` sets a listener config for one listener."""
    return key.startswith(PREFIX) and key.removeprefix(PREFIX).partition(".")[2] in _OF_LISTENERS


def is_of_a_listener(key: str, listeners: Collection[str]) -> bool:
    """Return whether ``key`` sets a listener config for one of ``listeners``, whose names are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_of_listeners(key) and listener.upper() in listeners and listener == listener.lower()


def check_of_listeners(texts: Mapping[str, str]) -> None:
    """Raise InvalidConfig if a listener's config has an invalid value."""
    for key, text in texts.items():
        if is_of_listeners(key):
            _parse(key, key.removeprefix(PREFIX).partition(".")[2], text)


def _parse(key: str, name: str, text: str) -> Value:
    return parse(BROKER_CONFIGS[name]._replace(name=key), text)


class ListenerConfig:
    """The typed values for ``listener``: ``config["ssl.client.auth"]``. ``texts`` are all set texts, ``values`` the broker's."""

    __slots__ = ("_is_sasl", "_own", "_values", "listener")

    def __init__(self, listener: str, values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        self.listener = listener
        self._values = values
        self._own: dict[str, Value] = {}
        self._is_sasl = security_protocols(values).get(listener) == SASL_SSL
        for name in _OF_LISTENERS:
            key = listener_key(listener, name)
            if key in texts:
                self._own[name] = _parse(key, name, texts[key])

    def __getitem__(self, name: str) -> Any:
        if name == "ssl.client.auth" and self._is_sasl and name not in self._own:
            # As in Kafka, the broker's value is for SSL listeners, where certificates name the clients.
            return "none"
        return self._own[name] if name in self._own else self._values[name]

    def key(self, name: str) -> str:
        """Return the key that sets the config."""
        return listener_key(self.listener, name) if name in self._own else name

    def ssl_values(self) -> tuple[Value, ...]:
        """Return the values that TLS on this listener depends on, for a comparison."""
        return tuple(self[name] for name in sorted(SSL_NAMES))

    def invalid(self, name: str, allowed: str) -> InvalidConfig:
        """Return the error for a wrong value. It does not reveal a secret."""
        value = HIDDEN if BROKER_CONFIGS[name].sensitive and self[name] is not None else to_text(self[name])
        return InvalidConfig(self.key(name), value or "(not set)", allowed)


PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_NAMES: Final = frozenset(row.name for row in SASL)
# These have one value for all listeners.
_OF_THE_BROKER: Final = frozenset({"connection.failed.authentication.delay.ms"})


def is_sasl_key(key: str) -> bool:
    """Return whether ``key`` sets a SASL config for a listener, or for one of its mechanisms."""
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX).partition(".")[2]
    mechanism, _, rest = name.partition(".")
    return name in _NAMES or (mechanism.upper() in MECHANISMS and rest in _NAMES)


def sets_sasl_of(key: str, listeners: Collection[str]) -> bool:
    """Return whether ``key`` sets a SASL config for one of ``listeners``, whose names are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_sasl_key(key) and listener.upper() in listeners and listener == listener.lower()


class SaslConfig:
    """The typed SASL values for ``listener``. ``texts`` are all set texts. Raises InvalidConfig for an invalid value."""

    __slots__ = ("_texts", "listener")

    def __init__(self, listener: str, texts: Mapping[str, str]) -> None:
        self.listener = listener
        self._texts = texts

    def value(self, name: str, mechanism: str | None = None) -> Any:
        """Return the value of a config, for a mechanism if one is given."""
        for key in self._keys(name, mechanism):
            if key in self._texts:
                return parse(BROKER_CONFIGS[name]._replace(name=key), self._texts[key])
        return BROKER_DEFAULTS[name]

    def is_set_for(self, name: str, mechanism: str) -> bool:
        """Return whether a config is set for exactly this mechanism of this listener."""
        return next(self._keys(name, mechanism)) in self._texts

    def key(self, name: str, mechanism: str | None = None) -> str:
        """Return the key that sets the config; if it is not set, the most specific key."""
        keys = list(self._keys(name, mechanism))
        return next((key for key in keys if key in self._texts), keys[0])

    def invalid(self, name: str, allowed: str, mechanism: str | None = None) -> InvalidConfig:
        """Return the error for a wrong value. It does not reveal a secret."""
        value = self.value(name, mechanism)
        told = HIDDEN if BROKER_CONFIGS[name].type == BROKER_CONFIGS["sasl.jaas.config"].type and value else to_text(value)
        return InvalidConfig(self.key(name, mechanism), told or "(not set)", allowed)

    def jaas_line(self, mechanism: str) -> str | None:
        """Return the JAAS line of a mechanism. A line for all mechanisms, or for all listeners, has no effect."""
        text: str | None = self._texts.get(self.jaas_key(mechanism))
        return text

    def jaas_key(self, mechanism: str) -> str:
        """Return the key that sets the JAAS line."""
        return next(self._keys("sasl.jaas.config", mechanism))

    def settings(self) -> dict[str, str]:
        """Return all settings that may concern this listener, for a comparison."""
        mine = f"{PREFIX}{self.listener.lower()}."
        return {key: text for key, text in self._texts.items() if key in _NAMES or key.startswith(mine)}

    def without_effect(self, mechanisms: Iterable[str]) -> Iterator[str]:
        """Yield the keys that are set for this listener's mechanisms which are not enabled."""
        mine = f"{PREFIX}{self.listener.lower()}."
        enabled = tuple(f"{mine}{mechanism.lower()}." for mechanism in mechanisms)
        for mechanism in MECHANISMS:
            start = f"{mine}{mechanism.lower()}."
            if start not in enabled:
                yield from (key for key in self._texts if key.startswith(start))

    def _keys(self, name: str, mechanism: str | None) -> Iterator[str]:
        if name not in _OF_THE_BROKER:
            listener = f"{PREFIX}{self.listener.lower()}."
            if mechanism is not None:
                yield f"{listener}{mechanism.lower()}.{name}"
            yield f"{listener}{name}"
        yield name
