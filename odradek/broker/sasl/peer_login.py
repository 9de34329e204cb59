"""As who a node of a cluster logs in at others, by a listener of theirs that wants SASL.

As in Kafka, who that is stands in the JAAS line of this node for that listener and mechanism, whether it listens there itself or
not: ``username`` and ``password``, beside the users that a PLAIN listener lets in, and for OAUTHBEARER what ``peer_tokens`` says.
Kafka's class is SaslChannelBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.config.definitions import HIDDEN, InvalidConfig
from odradek.broker.config.sasl_config import MECHANISMS, OAUTHBEARER
from odradek.broker.logging import log
from odradek.broker.sasl.listeners import login_module
from odradek.client.login import Login

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timing.clock import Clock

_WHY_NOT: Final = {"GSSAPI": "there is no GSSAPI (Kerberos)"}


class PeerLogin:
    """For the connections by one listener. ``config_name`` is the config that has the mechanism. Loop thread only."""

    def __init__(self, config: BrokerConfig, listener: str, config_name: str, clock: Clock) -> None:
        """Raises InvalidConfig."""
        self._config = config
        self._clock = clock
        self._listener = listener
        self._config_name = config_name
        self._login = self._read()

    def __call__(self) -> Login:
        """For one connection, or one session by a token. The configs are read again; what they said last stays if that fails."""
        try:
            self._login = self._read()
        except InvalidConfig as error:
            log.warn("logging in as before", listener=self._listener, reason=str(error))
        return self._login

    def _read(self) -> Login:
        mechanism = self._config[self._config_name]
        if mechanism not in MECHANISMS:
            allowed = f"one of {', '.join(MECHANISMS)}, since listener {self._listener} wants SASL"
            why_not = _WHY_NOT.get(mechanism)
            raise InvalidConfig(self._config_name, mechanism, allowed if why_not is None else f"{allowed}: {why_not}")
        sasl = self._config.sasl_config(self._listener)
        options = login_module(sasl, mechanism).options
        if mechanism == OAUTHBEARER:
            from odradek.broker.sasl.peer_tokens import peer_token

            return Login(mechanism, *peer_token(sasl, options, self._clock.now_ms()))
        missing = " and ".join(name for name in ("username", "password") if not options.get(name))
        if missing:
            allowed = f"a JAAS line with username and password, by which this node logs in: no {missing}"
            raise InvalidConfig(sasl.jaas_key(mechanism), HIDDEN, allowed)
        return Login(mechanism, options["username"], options["password"])
