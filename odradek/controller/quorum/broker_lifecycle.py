"""A broker's life in a cluster: it registers, stays fenced until it serves, sends heartbeats, and asks to shut down.

    STARTING                     registered; sends heartbeats, fenced, until the controller finds its metadata caught up
    RECOVERY                     opens its logs; fenced until ``ready_to_unfence``
    RUNNING                      sends heartbeats every broker.heartbeat.interval.ms
    PENDING_CONTROLLED_SHUTDOWN  waits until the controller has moved the leaderships away
    SHUTTING_DOWN                sends nothing any more

One request is open at a time. The successor of a killed process registers with a new incarnation id. While the controller
believes the old one alive, it refuses the new one (DUPLICATE_BROKER_REGISTRATION), which tries again.

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
from odradek.client.node_client import ExponentialBackoff
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
    """The states of a broker. The metric BrokerState shows the number."""

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
# The interval of heartbeats while catching up with the metadata, and before leave to shut down is requested again.
_STARTING_INTERVAL_MS: Final = 10
_FIRST_SHUTDOWN_INTERVAL_MS: Final = 50
_FIRST_BACKOFF_MS: Final = 100
# Kafka's brokers wait up to broker.session.timeout.ms. A killed broker may restart while its old session lasts, and should get in
# as soon as that ends.
_MAX_BACKOFF_MS: Final = 500


class RegistrationFailed(MembershipLost):
    """The controller did not accept the broker within ``initial.broker.registration.timeout.ms``."""


class Controller(Protocol):
    """The active controller, that is the ControllerChannel."""

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Return its response. Raises ControllerUnavailable, ClientError."""


class Registration(NamedTuple):
    """The data a process registers with. ``incarnation_id`` is new with each process.

    ``features`` are (name, lowest level, highest level) and must cover each finalized feature. ``previous_broker_epoch`` is the
    epoch of the previous process if that stopped cleanly, else -1. It tells the controller that nothing was lost.
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
    """The intervals and timeouts, with Kafka's names and defaults.

    These are ``broker.heartbeat.interval.ms``, ``broker.session.timeout.ms`` and ``initial.broker.registration.timeout.ms``.
    """

    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    initial_registration_timeout_ms: int = 60_000


class BrokerLifecycle:
    """The broker's life, which is ``run``. Everything else may be called at any time. Loop thread only."""

    def __init__(
        self,
        registration: Registration,
        controller: Controller,
        metadata_offset: Callable[[], int],
        timer: Timer,
        random: Random,
        config: LifecycleConfig | None = None,
    ) -> None:
        """Take ``metadata_offset``, which returns the last metadata offset applied here."""
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = -1
        # Called once each: when the controller finds the metadata caught up, and when it has unfenced the broker.
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
        # The time until which the controller must have registered this broker.
        self._registration_deadline_ms = 0.0
        # The time the controller last accepted a request.
        self._accepted_ms = 0.0
        self._is_registered = False
        self._is_ready = False
        self._has_asked_for_shutdown = False
        self._offline_directories: dict[UUID, None] = {}

    async def run(self) -> None:
        """Live until ``shut_down``, or until a controlled shutdown is over. Call once. Raises RegistrationFailed."""
        if not self._is_over:
            self._enter(BrokerState.STARTING)
        self._registration_deadline_ms = self._now() + self._config.initial_registration_timeout_ms
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
            if self.broker_epoch < 0 and self._now() + wait_ms >= self._registration_deadline_ms:
                raise RegistrationFailed(f"the controller has not accepted this broker: {reason}")
            if wait_ms > 0 and not self._is_over:
                await self._wakeup.wait(wait_ms)

    @property
    def _is_over(self) -> bool:
        return self.state == BrokerState.SHUTTING_DOWN

    def ready_to_unfence(self) -> None:
        """Report that the broker serves, so that the controller may unfence it."""
        self._is_ready = True
        self._wakeup.wake()

    def directory_failed(self, directory_id: UUID) -> None:
        """Tell the controller that a log directory is offline."""
        self._offline_directories[directory_id] = None
        self._wakeup.wake()

    def begin_controlled_shutdown(self) -> None:
        """Ask the controller to move the leaderships away, then end ``run``. A broker not running ends at once."""
        if self.state == BrokerState.RUNNING:
            self._enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self._wakeup.wake()
        elif self.state != BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.shut_down()

    def shut_down(self) -> None:
        """End ``run`` without asking the controller."""
        if self.state != BrokerState.SHUTTING_DOWN:
            self._enter(BrokerState.SHUTTING_DOWN)
        self._wakeup.wake()

    def _leave_without_controller(self) -> None:
        """End a controlled shutdown if this broker's session has expired: no controller has anything left to move."""
        silent_ms = self._now() - self._accepted_ms
        if self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN and silent_ms >= self._config.session_timeout_ms:
            broker_log.warn(
                "no controller answered: the broker stops without moving its leaderships away", silent_ms=round(silent_ms)
            )
            self.shut_down()

    async def _register(self) -> float:
        """Register. Return the ms until the next request. Raises _Refused."""
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
        """Send a heartbeat. Return the ms until the next request. Raises _Refused."""
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._is_ready,
            want_shut_down=self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=list(self._offline_directories),
        )
        return self._answered(await self._ask(_HEARTBEAT, request))

    def _answered(self, response: BrokerHeartbeatResponse) -> float:
        """Enter the next state if it is time. Return the ms until the next heartbeat."""
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
        timeout_ms = self._config.session_timeout_ms / 2
        if self.broker_epoch < 0:
            timeout_ms = min(timeout_ms, self._registration_deadline_ms - self._now())
        try:
            response = await self._controller.request(api, request, timeout_ms)
        except (ControllerUnavailable, ClientError) as error:
            reason = str(error)
        else:
            if response.error_code == ErrorCode.NONE:
                return response
            reason = f"{api.key.name} was answered with {error_name(response.error_code)}"
        if not self._failures:
            broker_log.warn("the controller does not accept this broker; trying again", reason=reason)
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
    """No-op callback."""
