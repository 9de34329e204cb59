"""The configs of one listener: ``listener.name.<listener>.<config>``, else the broker's.

A listener that has its clients authenticate by SASL has configs of a mechanism, too:

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
    """The key that sets a config for one listener."""
    return f"{PREFIX}{listener.lower()}.{name}"


def is_of_listeners(key: str) -> bool:
    """Return whether ``key`` sets, for one listener, a config that listeners have."""
    return key.startswith(PREFIX) and key.removeprefix(PREFIX).partition(".")[2] in _OF_LISTENERS


def is_of_a_listener(key: str, listeners: Collection[str]) -> bool:
    """Return whether it does so for one of ``listeners``, which are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_of_listeners(key) and listener.upper() in listeners and listener == listener.lower()


def check_of_listeners(texts: Mapping[str, str]) -> None:
    """Raise InvalidConfig if a config is set for a listener that cannot have such a value."""
    for key, text in texts.items():
        if is_of_listeners(key):
            _parse(key, key.removeprefix(PREFIX).partition(".")[2], text)


def _parse(key: str, name: str, text: str) -> Value:
    return parse(BROKER_CONFIGS[name]._replace(name=key), text)


class ListenerConfig:
    """The typed values for ``listener``: ``config["ssl.client.auth"]``. ``texts`` are all that is set, ``values`` a broker's."""

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
            # As in Kafka, the broker's value is for SSL listeners, whose certificates name the clients.
            return "none"
        return self._own[name] if name in self._own else self._values[name]

    def key(self, name: str) -> str:
        """The key by which the config is set."""
        return listener_key(self.listener, name) if name in self._own else name

    def ssl_values(self) -> tuple[Value, ...]:
        """Return the values that TLS on this listener depends on, for a comparison."""
        return tuple(self[name] for name in sorted(SSL_NAMES))

    def invalid(self, name: str, allowed: str) -> InvalidConfig:
        """The error for a value that is wrong; a secret is not in it."""
        value = HIDDEN if BROKER_CONFIGS[name].sensitive and self[name] is not None else to_text(self[name])
        return InvalidConfig(self.key(name), value or "(not set)", allowed)


PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_NAMES: Final = frozenset(row.name for row in SASL)
# These have one value, whatever the listener.
_OF_THE_BROKER: Final = frozenset({"connection.failed.authentication.delay.ms"})


def is_sasl_key(key: str) -> bool:
    """Return whether ``key`` sets a config of SASL for a listener, or for one of its mechanisms."""
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX).partition(".")[2]
    mechanism, _, rest = name.partition(".")
    return name in _NAMES or (mechanism.upper() in MECHANISMS and rest in _NAMES)


def sets_sasl_of(key: str, listeners: Collection[str]) -> bool:
    """Return whether it does so for one of ``listeners``, which are in upper case."""
    listener = key.removeprefix(PREFIX).partition(".")[0]
    return is_sasl_key(key) and listener.upper() in listeners and listener == listener.lower()


class SaslConfig:
    """The typed values for ``listener``. ``texts`` are all that is set. Raises InvalidConfig for a value that cannot be."""

    __slots__ = ("_texts", "listener")

    def __init__(self, listener: str, texts: Mapping[str, str]) -> None:
        self.listener = listener
        self._texts = texts

    def value(self, name: str, mechanism: str | None = None) -> Any:
        """The value of a config, for a mechanism if one is given."""
        for key in self._keys(name, mechanism):
            if key in self._texts:
                return parse(BROKER_CONFIGS[name]._replace(name=key), self._texts[key])
        return BROKER_DEFAULTS[name]

    def is_set_for(self, name: str, mechanism: str) -> bool:
        """Return whether a config is set for a mechanism of this listener alone."""
        return next(self._keys(name, mechanism)) in self._texts

    def key(self, name: str, mechanism: str | None = None) -> str:
        """The key by which the config is set; the first that could be, if it is not."""
        keys = list(self._keys(name, mechanism))
        return next((key for key in keys if key in self._texts), keys[0])

    def invalid(self, name: str, allowed: str, mechanism: str | None = None) -> InvalidConfig:
        """The error for a value that is wrong; a secret is not in it."""
        value = self.value(name, mechanism)
        told = HIDDEN if BROKER_CONFIGS[name].type == BROKER_CONFIGS["sasl.jaas.config"].type and value else to_text(value)
        return InvalidConfig(self.key(name, mechanism), told or "(not set)", allowed)

    def jaas_line(self, mechanism: str) -> str | None:
        """The JAAS line of a mechanism; there is none for all mechanisms, or for all listeners."""
        text: str | None = self._texts.get(self.jaas_key(mechanism))
        return text

    def jaas_key(self, mechanism: str) -> str:
        """The key by which it is set."""
        return next(self._keys("sasl.jaas.config", mechanism))

    def settings(self) -> dict[str, str]:
        """All that is set, and may concern this listener: to be compared."""
        mine = f"{PREFIX}{self.listener.lower()}."
        return {key: text for key, text in self._texts.items() if key in _NAMES or key.startswith(mine)}

    def without_effect(self, mechanisms: Iterable[str]) -> Iterator[str]:
        """What is set for this listener's mechanisms, none of which is enabled."""
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
