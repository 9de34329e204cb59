"""A broker's life in a cluster: it registers, is fenced until it serves, sends heartbeats, and asks for leave to shut down.

    STARTING                     registered; heartbeats, fenced, until the controller says that the metadata are caught up with
    RECOVERY                     the logs are opened; fenced until ``ready_to_unfence``
    RUNNING                      heartbeats every broker.heartbeat.interval.ms
    PENDING_CONTROLLED_SHUTDOWN  until the controller has moved the leaderships away
    SHUTTING_DOWN                nothing is sent any more

One request is open at a time. A process that was killed registers with a new incarnation id; as long as the controller takes the
old one for alive, it is refused (DUPLICATE_BROKER_REGISTRATION) and tries again.

Kafka's class is BrokerLifecycleManager (KIP-631, KIP-858). Names and numbers of the states are Kafka's (BrokerState). Left out
are cordoned directories (KIP-1066).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from random import Random
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from odradek.client.api import Api, ClientError, RequestT
from odradek.client.config import ExponentialBackoff
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.controller.quorum.leader_discovery import MembershipLost
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, error_name
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from odradek.timing.driver import Wakeup
from odradek.timing.timer import Timer


class BrokerState(IntEnum):
    """The metric BrokerState has the number."""

    NOT_RUNNING = 0
    # Registers, and catches up with the metadata.
    STARTING = 1
    # Opens its logs; still fenced.
    RECOVERY = 2
    RUNNING = 3
    # The controller moves its leaderships away.
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


TRANSITIONS: Final = {
    BrokerState.NOT_RUNNING: {BrokerState.STARTING, BrokerState.SHUTTING_DOWN},
    BrokerState.STARTING: {BrokerState.RECOVERY, BrokerState.SHUTTING_DOWN},
    BrokerState.RECOVERY: {BrokerState.RUNNING, BrokerState.SHUTTING_DOWN},
    BrokerState.RUNNING: {BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN},
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: {BrokerState.SHUTTING_DOWN},
    BrokerState.SHUTTING_DOWN: set(),
}


class IllegalTransition(Exception):
    """A transition that ``TRANSITIONS`` does not have."""


def ensure_transition(old: BrokerState, new: BrokerState) -> None:
    """Raise IllegalTransition unless ``new`` may follow ``old``."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"{old.name} to {new.name}")


_REGISTRATION: Final[Api[BrokerRegistrationRequest, BrokerRegistrationResponse]] = Api(ApiKey.BROKER_REGISTRATION)
_HEARTBEAT: Final[Api[BrokerHeartbeatRequest, BrokerHeartbeatResponse]] = Api(ApiKey.BROKER_HEARTBEAT)
# While the metadata are caught up with; and the first time that leave to shut down has to be asked for again.
_STARTING_INTERVAL_MS: Final = 10
_FIRST_SHUTDOWN_INTERVAL_MS: Final = 50
_FIRST_BACKOFF_MS: Final = 100
# Kafka's brokers wait up to broker.session.timeout.ms. A broker that was killed may be started again while its old session
# lasts, and is to be let in when that ends.
_MAX_BACKOFF_MS: Final = 500


class RegistrationFailed(MembershipLost):
    """The controller did not accept the broker within ``initial.broker.registration.timeout.ms``."""


class Controller(Protocol):
    """The active controller: the ControllerChannel."""

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Its response. Raises ControllerUnavailable, ClientError."""


class Registration(NamedTuple):
    """What a process tells of itself. ``incarnation_id`` is new with each process.

    ``features`` are (name, lowest level, highest level) and must cover each finalized feature. ``previous_broker_epoch`` is that
    of the process that stopped in good order, else -1: from it the controller learns that nothing was lost.
    """

    node_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: Sequence[Listener]
    features: Sequence[tuple[str, int, int]]
    log_dirs: Sequence[UUID]
    rack: str | None = None
    previous_broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Kafka's names and defaults: ``broker.heartbeat.interval.ms``, ``broker.session.timeout.ms``.

    ``initial_registration_timeout_ms`` is ``initial.broker.registration.timeout.ms``.
    """

    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    initial_registration_timeout_ms: int = 60_000


class BrokerLifecycle:
    """``run`` is the broker's life; everything else may be called at any time. Loop thread only."""

    def __init__(
        self,
        registration: Registration,
        controller: Controller,
        metadata_offset: Callable[[], int],
        timer: Timer,
        random: Random,
        config: LifecycleConfig | None = None,
    ) -> None:
        """``metadata_offset`` tells the last offset up to which the metadata are applied here."""
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = -1
        # Called when the controller has found the metadata caught up with, and when it has unfenced the broker: once each.
        self.on_caught_up: Callable[[], object] = _ignore
        self.on_unfenced: Callable[[], object] = _ignore
        self._registration = registration
        self._controller = controller
        self._metadata_offset = metadata_offset
        self._timer = timer
        self._config = config or LifecycleConfig()
        self._wakeup = Wakeup(timer)
        self._backoff = ExponentialBackoff(_FIRST_BACKOFF_MS, _MAX_BACKOFF_MS, random)
        self._failures = 0
        # When the controller last accepted a request.
        self._accepted_ms = 0.0
        self._is_registered = False
        self._is_ready = False
        self._has_asked_for_shutdown = False
        # By id: whether the controller knows of it.
        self._offline_directories: dict[UUID, bool] = {}

    async def run(self) -> None:
        """Live until ``shut_down``, or until a controlled shutdown is over; to be called once. Raises RegistrationFailed."""
        if not self._is_over:
            self._enter(BrokerState.STARTING)
        deadline_ms = self._now() + self._config.initial_registration_timeout_ms
        while not self._is_over:
            reason = ""
            try:
                wait_ms = await (self._send_heartbeat() if self._is_registered else self._register())
                self._failures = 0
                self._accepted_ms = self._now()
            except _Refused as refused:
                self._failures += 1
                reason = str(refused)
                wait_ms = self._backoff.delay_ms(self._failures)
                self._wakeup.forget()
                self._leave_without_controller()
            if self.broker_epoch < 0 and self._now() + wait_ms >= deadline_ms:
                raise RegistrationFailed(f"the controller has not accepted this broker: {reason}")
            if wait_ms > 0 and not self._is_over:
                await self._wakeup.wait(wait_ms)

    @property
    def _is_over(self) -> bool:
        return self.state == BrokerState.SHUTTING_DOWN

    def ready_to_unfence(self) -> None:
        """The broker serves: the controller may unfence it."""
        self._is_ready = True
        self._wakeup.wake()

    def register_again(self) -> None:
        """Let the controller know of what has changed: features or directories."""
        self._is_registered = False
        self._wakeup.wake()

    def directory_failed(self, directory_id: UUID) -> None:
        """Tell the controller that a log directory is offline."""
        self._offline_directories[directory_id] = False
        self._wakeup.wake()

    def knows_of(self, directory_id: UUID) -> bool:
        """Return whether the controller has been told that a log directory is offline."""
        return self._offline_directories.get(directory_id, False)

    def begin_controlled_shutdown(self) -> None:
        """Ask the controller to move the leaderships away; ``run`` ends when it has. A broker that does not run ends at once."""
        if self.state == BrokerState.RUNNING:
            self._enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self._wakeup.wake()
        elif self.state != BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.shut_down()

    def shut_down(self) -> None:
        """End ``run`` without leave."""
        if self.state != BrokerState.SHUTTING_DOWN:
            self._enter(BrokerState.SHUTTING_DOWN)
        self._wakeup.wake()

    def _leave_without_controller(self) -> None:
        """End a controlled shutdown if this broker's session is over: no controller has anything left to move."""
        silent_ms = self._now() - self._accepted_ms
        if self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN and silent_ms >= self._config.session_timeout_ms:
            broker_log.warn("no controller moves the leaderships away: the broker ends without", silent_ms=round(silent_ms))
            self.shut_down()

    async def _register(self) -> float:
        """Returns when to send the next request, in ms. Raises _Refused."""
        known = self._registration
        request = BrokerRegistrationRequest(
            broker_id=known.node_id,
            cluster_id=known.cluster_id,
            incarnation_id=known.incarnation_id,
            listeners=known.listeners,
            features=[Feature(*feature) for feature in known.features],
            rack=known.rack,
            log_dirs=sorted(known.log_dirs),
            previous_broker_epoch=known.previous_broker_epoch,
        )
        self._is_registered = True
        try:
            response = await self._ask(_REGISTRATION, request)
        except _Refused:
            self._is_registered = False
            raise
        self.broker_epoch = response.broker_epoch
        broker_log.info("broker registered", node=known.node_id, epoch=response.broker_epoch)
        return 0

    async def _send_heartbeat(self) -> float:
        """Returns when to send the next request, in ms. Raises _Refused."""
        offline = list(self._offline_directories)
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._is_ready,
            want_shut_down=self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=offline,
        )
        response = await self._ask(_HEARTBEAT, request)
        self._offline_directories |= dict.fromkeys(offline, True)
        return self._answered(response)

    def _answered(self, response: BrokerHeartbeatResponse) -> float:
        """Go on to the next state, if it is time; returns when to send the next heartbeat, in ms."""
        match self.state:
            case BrokerState.STARTING:
                if response.is_caught_up:
                    self._enter(BrokerState.RECOVERY)
                    self.on_caught_up()
                return _STARTING_INTERVAL_MS
            case BrokerState.RECOVERY:
                if not response.is_fenced:
                    self._enter(BrokerState.RUNNING)
                    self.on_unfenced()
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if response.should_shut_down:
                    self._enter(BrokerState.SHUTTING_DOWN)
                elif not self._has_asked_for_shutdown:
                    self._has_asked_for_shutdown = True
                    return _FIRST_SHUTDOWN_INTERVAL_MS
        return self._config.heartbeat_interval_ms

    async def _ask(self, api: Api[RequestT, AnswerT], request: RequestT) -> AnswerT:
        try:
            response = await self._controller.request(api, request, self._config.session_timeout_ms / 2)
        except (ControllerUnavailable, ClientError) as error:
            reason = str(error)
        else:
            if response.error_code == ErrorCode.NONE:
                return response
            reason = f"{api.key.name} was answered with {error_name(response.error_code)}"
        if not self._failures:
            broker_log.warn("the controller does not accept this broker", reason=reason)
        raise _Refused(reason)

    def _enter(self, state: BrokerState) -> None:
        ensure_transition(self.state, state)
        broker_log.info("broker state", old=self.state.name, new=state.name)
        self.state = state

    def _now(self) -> float:
        return self._timer.clock.monotonic_ms()


class _Refused(Exception):
    """The controller refused a request, or did not answer it."""


def _ignore() -> None:
    """Nobody wants to know."""
