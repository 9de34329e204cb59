"""The configs of one listener: ``listener.name.<listener>.<config>``, else the broker's.

As in Kafka, the listener's name is in lower case there.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from odradek.broker.config.definitions import HIDDEN, InvalidConfig, Value, parse, to_text
from odradek.broker.config.endpoints import SASL_SSL, security_protocols
from odradek.broker.config.table import BROKER_CONFIGS
from odradek.broker.config.table_ssl import SSL_NAMES

PREFIX: Final = "listener.name."
_OF_LISTENERS: Final = SSL_NAMES


def listener_key(listener: str, name: str) -> str:
    """The key that sets a config for one listener."""
    return f"{PREFIX}{listener.lower()}.{name}"


def is_of_listeners(key: str) -> bool:
    """Whether ``key`` sets, for one listener, a config that listeners have."""
    return key.startswith(PREFIX) and key.removeprefix(PREFIX).partition(".")[2] in _OF_LISTENERS


def is_of_a_listener(key: str, listeners: Collection[str]) -> bool:
    """Whether it does so for one of ``listeners``, which are in upper case."""
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
            # As in Kafka: the broker's is for SSL listeners, whose clients say by it who they are.
            return "none"
        return self._own[name] if name in self._own else self._values[name]

    def key(self, name: str) -> str:
        """The key by which the config is set."""
        return listener_key(self.listener, name) if name in self._own else name

    def ssl_values(self) -> tuple[Value, ...]:
        """What TLS on this listener depends on, to be compared."""
        return tuple(self[name] for name in sorted(SSL_NAMES))

    def invalid(self, name: str, allowed: str) -> InvalidConfig:
        """The error for a value that is wrong; a secret is not in it."""
        value = HIDDEN if BROKER_CONFIGS[name].sensitive and self[name] is not None else to_text(self[name])
        return InvalidConfig(self.key(name), value or "(not set)", allowed)
