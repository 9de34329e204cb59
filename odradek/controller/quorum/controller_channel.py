"""Requests to the active controller, whichever node it is (Kafka: NodeToControllerChannelManager).

The observer reports the quorum's leader, which is the active controller. A request is sent again if there is no controller, no
response, or the error NOT_CONTROLLER: after ``retry.backoff.ms``, or as soon as there is another leader, until its time is over.
So the controller may see a request twice. All requests sent this way tolerate that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from odradek.client.api import Api, ClientError, InvalidRequest, RequestT, UnsupportedVersion
from odradek.client.node_client import ClientConfig, Connect, NodeClient
from odradek.controller.quorum.leader_discovery import Address, Leader
from odradek.protocol.errors import ErrorCode
from odradek.timing.driver import Wakeup
from odradek.timing.timer import Timer

_NO_CONTROLLER: Final = "the quorum has no leader"


class ControllerResponse(Protocol):
    """The response to a request that only the active controller answers."""

    @property
    def error_code(self) -> int:
        """Return the error code: NOT_CONTROLLER from every other node."""


AnswerT = TypeVar("AnswerT", bound=ControllerResponse)


class ControllerUnavailable(Exception):
    """No controller answered in time. It is unknown whether one has carried out the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConfig:
    """Kafka's defaults: ``controller.socket.timeout.ms`` for one attempt, and ``retry.backoff.ms``, fixed at 100."""

    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100


class ControllerChannel:
    """The one connection to the active controller. Loop thread only."""

    def __init__(
        self,
        client_id: str,
        connect: Callable[[Address], Connect],
        timer: Timer,
        random: Random,
        config: ChannelConfig | None = None,
    ) -> None:
        self._client_id = client_id
        self._connect = connect
        self._timer = timer
        self._random = random
        self._config = config or ChannelConfig()
        self._leader: Leader | None = None
        self._client: tuple[Address, NodeClient] | None = None
        self._waiting: list[Wakeup] = []

    def set_leader(self, leader: Leader | None) -> None:
        """Note that the quorum has another leader, or none."""
        self._leader = leader
        if leader is None or (self._client is not None and self._client[0] != leader.address):
            self.close()
        for wakeup in self._waiting:
            wakeup.wake()

    def close(self) -> None:
        """Close the connection. Requests under way are sent again to the leader of that time."""
        if self._client is not None:
            self._client[1].close()
            self._client = None

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Return the active controller's response. Raises ControllerUnavailable, UnsupportedVersion, InvalidRequest."""
        deadline_ms = self._now() + timeout_ms
        wakeup = Wakeup(self._timer)
        self._waiting.append(wakeup)
        try:
            while True:
                wakeup.forget()
                response, reason = await self._attempt(api, request, deadline_ms - self._now())
                if response is not None:
                    return response
                left_ms = deadline_ms - self._now()
                if left_ms <= 0:
                    raise ControllerUnavailable(f"{api.key.name}: {reason}")
                await wakeup.wait(min(self._config.retry_backoff_ms, left_ms))
        finally:
            self._waiting.remove(wakeup)

    async def _attempt(self, api: Api[RequestT, AnswerT], request: RequestT, left_ms: float) -> tuple[AnswerT | None, str]:
        """Return the response, or None and the reason why there is none."""
        if self._leader is None:
            return None, _NO_CONTROLLER
        timeout_ms = max(int(min(left_ms, self._config.request_timeout_ms)), 1)
        try:
            response = await self._client_of(self._leader).request(api, request, timeout_ms)
        except (UnsupportedVersion, InvalidRequest):
            raise
        except ClientError as error:
            return None, error.reason
        # CreateTopics has an error for each topic, but none at the top level.
        if getattr(response, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER:
            return None, "the quorum's leader is not the active controller yet, or no longer"
        return response, ""

    def _client_of(self, leader: Leader) -> NodeClient:
        if self._client is None:
            timeout_ms = self._config.request_timeout_ms
            config = ClientConfig(
                client_id=self._client_id, request_timeout_ms=timeout_ms, connection_setup_timeout_ms=timeout_ms
            )
            client = NodeClient(self._connect(leader.address), self._timer, self._random, config)
            self._client = leader.address, client
        return self._client[1]

    def _now(self) -> float:
        return self._timer.clock.monotonic_ms()
