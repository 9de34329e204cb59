"""The page's Kafka clients, one for each login: over this broker's own listener, with the rights of the login's user.

If a listener of the broker wants a login, that one is used, so the page opens no other way in. The page is a client like any
other, and never presents the broker's own certificate. A client is closed when nobody has used it for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.api import ClientError, LoginFailed
from odradek.client.cluster_client import open_cluster
from odradek.client.login import OAUTHBEARER, PLAIN, Login
from odradek.common.config.listener_config import PLAINTEXT, SASL_PROTOCOLS, TLS_PROTOCOLS, ListenerConfig, security_protocols
from odradek.page.facts.source import Source
from odradek.page.watch import PAGE_CLIENT_ID
from odradek.timing.driver import OwnTasks

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.client.cluster_client import ClusterClient
    from odradek.client.known_cluster import Address
    from odradek.page.watch import Watch
    from odradek.testing.listening import ListeningBroker

_UNUSED_S: Final = 20.0
_LOOPBACK: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not bound
_PASSWORD_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", PLAIN)


class Listener(NamedTuple):
    """The listener of the page. ``mechanisms`` is empty if it wants no login."""

    name: str
    bound: Address
    advertised: Address
    is_tls: bool
    mechanisms: tuple[str, ...]


def page_listener(broker: ListeningBroker) -> Listener:
    """Return the first listener that wants a login, else the first one. Raises NotRunning."""
    core = broker.core
    protocols = security_protocols(core.config)
    names = sorted(core.listener_names, key=lambda name: protocols.get(name, PLAINTEXT) not in SASL_PROTOCOLS)
    protocol = protocols.get(names[0], PLAINTEXT)
    mechanisms: tuple[str, ...] = ()
    if protocol in SASL_PROTOCOLS:
        mechanisms = tuple(core.config.sasl_config(names[0]).value("sasl.enabled.mechanisms"))
    host, port = broker.bound_at(names[0])
    return Listener(names[0], (_LOOPBACK.get(host, host), port), core.advertised(names[0]), protocol in TLS_PROTOCOLS, mechanisms)


def _tls_of(core: BrokerCore, listener: Listener) -> ssl.SSLContext | None:
    """Return the context of a client that trusts the broker's own certificate, and presents none."""
    if not listener.is_tls:
        return None
    import ssl

    from odradek.broker.security.tls.key_stores import load_server_key_store
    from odradek.broker.security.tls.tls_context import client_context

    config: ListenerConfig = core.config.listener_config(listener.name)
    context = client_context(config, None)
    context.load_verify_locations(cadata=load_server_key_store(config).chain)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def is_login_refused(error: BaseException | None) -> bool:
    """Return whether an error comes from a login that the broker has refused."""
    while error is not None and not isinstance(error, LoginFailed):
        error = error.__cause__
    return error is not None


class _User:
    """An open client, and how many use it now."""

    def __init__(self, listener: Listener, cluster: ClusterClient, stack: AsyncExitStack) -> None:
        self.listener = listener
        self.cluster = cluster
        self.stack = stack
        self.uses = 0
        self.closing: asyncio.TimerHandle | None = None


class Users:
    """The clients by login. Loop thread only."""

    def __init__(self, broker: ListeningBroker, watch: Watch) -> None:
        self._broker = broker
        self._watch = watch
        self._open: dict[Login | None, _User] = {}
        self._ending = OwnTasks()

    @asynccontextmanager
    async def source(self, login: Login | None) -> AsyncIterator[Source]:
        """Yield the source of a user. Raises NotRunning."""
        user = await self._user(login)
        user.uses += 1
        if user.closing is not None:
            user.closing.cancel()
        try:
            yield Source(user.cluster, self._broker, self._watch)
        finally:
            user.uses -= 1
            if not user.uses:
                user.closing = asyncio.get_running_loop().call_later(_UNUSED_S, self._end, login, user)

    async def log_in(self, user: str, password: str) -> Login:
        """Return the login that the listener accepts. Raises ClientError, NotRunning."""
        mechanisms = page_listener(self._broker).mechanisms
        wanted = [name for name in _PASSWORD_MECHANISMS if name in mechanisms] if user else [OAUTHBEARER]
        refusal: ClientError = LoginFailed(
            "the broker's listener takes a token only: leave the user empty, and give it as password"
        )
        for mechanism in wanted:
            login = Login(mechanism, user, password)
            try:
                async with self.source(login) as source:
                    await source.cluster.refresh([])
            except ClientError as error:
                if login in self._open:
                    self._end(login, self._open[login])
                if not is_login_refused(error):
                    raise
                refusal = error
            else:
                return login
        raise refusal

    async def close(self) -> None:
        """Close all clients."""
        for login, user in list(self._open.items()):
            self._end(login, user)
        await self._ending.ended()

    async def _user(self, login: Login | None) -> _User:
        listener = page_listener(self._broker)
        user = self._open.get(login)
        if user is not None and user.listener == listener:
            return user
        stack = AsyncExitStack()
        dialled = {listener.advertised: listener.bound}
        opened = open_cluster([listener.advertised], PAGE_CLIENT_ID, _tls_of(self._broker.core, listener), login, dialled)
        cluster = await stack.enter_async_context(opened)
        if user is not None:
            self._end(login, user)
        user = self._open[login] = _User(listener, cluster, stack)
        return user

    def _end(self, login: Login | None, user: _User) -> None:
        if self._open.get(login) is user:
            del self._open[login]
        if user.closing is not None:
            user.closing.cancel()
        self._ending.start(user.stack.aclose())
