"""The configs of a listener that has its clients authenticate by SASL.

    listener.name.<listener>.<mechanism>.<config>    of one mechanism there, else
    listener.name.<listener>.<config>                of the listener, else
    <config>                                         of the broker

Listeners and mechanisms are in lower case in these keys, as in Kafka.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from odradek.broker.config.definitions import HIDDEN, InvalidConfig, parse, to_text
from odradek.broker.config.table import BROKER_CONFIGS, BROKER_DEFAULTS
from odradek.broker.config.table_sasl import SASL

PREFIX: Final = "listener.name."
PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_NAMES: Final = frozenset(row.name for row in SASL)
# These have one value, whatever the listener.
_OF_THE_BROKER: Final = frozenset({"connection.failed.authentication.delay.ms"})


def is_sasl_key(key: str) -> bool:
    """Whether ``key`` sets a config of SASL for a listener, or for one of its mechanisms."""
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX).partition(".")[2]
    mechanism, _, rest = name.partition(".")
    return name in _NAMES or (mechanism.upper() in MECHANISMS and rest in _NAMES)


def sets_sasl_of(key: str, listeners: Collection[str]) -> bool:
    """Whether it does so for one of ``listeners``, which are in upper case."""
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
        """Whether a config is set for a mechanism of this listener alone."""
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
