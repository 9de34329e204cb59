"""The gate that enforces client quotas: it records the usage of requests, sets throttle times, and mutes connections.

    Produce      the bytes of the request, and its time unless acks are 0
    Fetch        recorded by its handler (``FetchQuota``), which sends no data to a client above its quota
    ShareFetch   the bytes of the response, and its time
    others       their time. If the answer already has a longer throttle time, such as the controller's, that one holds

An answer goes out at once, with its throttle time. The connection begins no request until that time is over (KIP-219). The
longest of several throttle times holds. As in Kafka, answers in versions before KIP-219 also mute the connection.

The gate and the ``QuotaManagers`` that it asks exist only while the metadata image has a quota (``quota_switch``).

A consumer's bytes are recorded before they are sent. Above its quota, the consumer gets an answer without partitions and a
throttle time, the recorded bytes are subtracted again, and its fetch session stays as it was. The request's time is recorded at
the same moment. Followers are exempt from client quotas.

A member of a share group is charged to the same quota as a consumer, but gets its records: it has acquired them, and nobody else
can until their locks expire. In Kafka it gets none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.quotas.client_quota_manager import (
    SHOWN_SAMPLE_MS,
    SHOWN_SAMPLES,
    ClientQuotaManager,
    MutationQuota,
    MutationQuotaManager,
    QuotaWindow,
    Samples,
    share_fetch_response_bytes,
)
from odradek.common.context import CLOSE_CONNECTION, RequestContext, RequestCost
from odradek.controller.metadata.client_quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.fetch import FetchRequest
from odradek.protocol.message_types.share_fetch import ShareFetchResponse
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest

if TYPE_CHECKING:
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.client_quotas import ClientQuotas
    from odradek.timing.clock import Clock

_MS_TO_PERCENT = 100 / 1_000


class QuotaManagers:
    """A manager for each kind of quota. Loop thread only."""

    def __init__(self, quotas: "ClientQuotas", config: "BrokerConfig", clock: "Clock") -> None:
        window = QuotaWindow(config["quota.window.num"], config["quota.window.size.seconds"])
        of_controller = QuotaWindow(config["controller.quota.window.num"], config["controller.quota.window.size.seconds"])
        self._clock = clock
        self.produce = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, window)
        self.fetch = ClientQuotaManager(CONSUMER_BYTE_RATE, quotas, window)
        self.request = ClientQuotaManager(REQUEST_PERCENTAGE, quotas, window, most_ms=window.sample_s * 1_000)
        self.mutation = MutationQuotaManager(quotas, of_controller, self.now_ms)
        # The time of requests that are exempt from client quotas.
        self.exempt = Samples(SHOWN_SAMPLES, SHOWN_SAMPLE_MS)

    def now_ms(self) -> int:
        """Return the time for all managers: monotonic, in whole milliseconds."""
        return int(self._clock.monotonic_ms())

    def mutation_quota(self, context: "RequestContext") -> MutationQuota | None:
        """Return the quota of a request that changes topics; None if its client has no quota."""
        if context.session.is_own or not self.mutation.is_enabled:
            return None
        return self.mutation.quota_for(user_of(context), context.client_id or "", context.api_key, context.version)

    def record_time(self, context: "RequestContext") -> int:
        """Record the time that a request took, once. Return its client's throttle time."""
        cost = context.cost
        if cost is None or cost.is_counted or not self.request.is_enabled:
            return 0
        cost.is_counted = True
        worked_ms = self._clock.monotonic_ms() - cost.began_ms if cost.worked_ms is None else cost.worked_ms
        now_ms = self.now_ms()
        if cost.is_exempt:
            self.exempt.record(worked_ms * _MS_TO_PERCENT, now_ms)
            return 0
        return self.request.record(user_of(context), context.client_id or "", worked_ms * _MS_TO_PERCENT, now_ms)

    def note_throttled(self, manager: ClientQuotaManager, context: "RequestContext", throttle_ms: int) -> None:
        """Note that a client is throttled for its usage of one quota."""
        manager.note_throttled(user_of(context), context.client_id or "", throttle_ms, self.now_ms())


def user_of(context: "RequestContext") -> str:
    """Return the user for quotas: the name in the principal, ANONYMOUS for an unauthenticated client."""
    return context.session.principal.partition(":")[2]


_THROTTLE: Final = "throttle_time_ms"
# The requests between brokers, which Kafka exempts.
_OF_BROKERS: Final = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ENVELOPE,
    }
)
_MUTATIONS: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})


class ThrottleGate:
    """The ``Gate`` that enforces client quotas. Loop thread only."""

    __slots__ = ("_clock", "_managers")

    def __init__(self, managers: QuotaManagers, clock: "Clock") -> None:
        self._managers = managers
        self._clock = clock

    def admit(self, context: RequestContext, request: object) -> None:
        """Admit every request, and begin to measure its cost."""
        if not context.session.is_own:
            context.cost = RequestCost(self._clock.monotonic_ms(), is_exempt=_is_exempt(context.api_key, request))

    def release(self, context: RequestContext, response: object) -> object:
        """Charge the request to its quotas, and put the throttle time into the response."""
        if context.cost is None or response is CLOSE_CONNECTION:
            return response
        managers = self._managers
        throttle_ms, manager = managers.record_time(context), managers.request
        for_bytes_ms, of_bytes = self._record_bytes(context, response)
        if for_bytes_ms > throttle_ms:
            throttle_ms, manager = for_bytes_ms, of_bytes
        told_ms = getattr(response, _THROTTLE, 0)
        if told_ms > throttle_ms:
            throttle_ms, manager = told_ms, managers.fetch if context.api_key == ApiKey.FETCH else managers.request
            if context.api_key in _MUTATIONS:
                manager = managers.mutation
        if throttle_ms <= 0:
            return response
        self._throttle(context, throttle_ms, manager)
        return response if told_ms == throttle_ms else _with_throttle_time(context, response, throttle_ms)

    def _record_bytes(self, context: RequestContext, response: object) -> "tuple[int, ClientQuotaManager]":
        """Charge the bytes of a Produce or a ShareFetch. Return the throttle time for them, and their manager."""
        managers = self._managers
        manager = managers.produce
        if context.api_key == ApiKey.PRODUCE and manager.is_enabled:
            size_bytes = context.size_bytes
        elif isinstance(response, ShareFetchResponse) and managers.fetch.is_enabled:
            manager, size_bytes = managers.fetch, share_fetch_response_bytes(response)
        else:
            return 0, manager
        return manager.record(user_of(context), context.client_id or "", size_bytes, managers.now_ms()), manager

    def _throttle(self, context: RequestContext, throttle_ms: int, manager: "ClientQuotaManager") -> None:
        if context.api_key != ApiKey.FETCH or manager is self._managers.request:
            self._managers.note_throttled(manager, context, throttle_ms)
        if context.session.connection is not None:
            context.session.connection.mute(throttle_ms)


def _is_exempt(api_key: ApiKey, request: object) -> bool:
    if isinstance(request, ProduceRequest):
        return request.acks == 0
    if isinstance(request, FetchRequest):
        return request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return api_key in _OF_BROKERS


def _with_throttle_time(context: RequestContext, response: object, throttle_ms: int) -> object:
    """Return the response with the throttle time, if it has a field for it."""
    if not isinstance(response, tuple) or not hasattr(response, _THROTTLE):
        return response
    # A shared response has a class of its own.
    return messages(context.api_key).response(*response)._replace(**{_THROTTLE: throttle_ms})


class FetchQuota:
    """The quota of one Fetch or ShareFetch request. Loop thread only."""

    __slots__ = ("_client_id", "_context", "_managers", "_user")

    def __init__(self, managers: QuotaManagers, context: "RequestContext") -> None:
        self._managers = managers
        self._context = context
        self._user = user_of(context)
        self._client_id = context.client_id or ""

    def most_bytes(self, asked_bytes: int) -> int:
        """Return the most bytes to read. More would exceed the quota of even an idle client."""
        most = self._managers.fetch.most_in_window(self._user, self._client_id, self._managers.now_ms())
        return asked_bytes if most is None else int(min(most, asked_bytes))

    def throttle_ms(self, size_bytes: int) -> int:
        """Return the throttle time that replaces an answer of this size; 0 if the answer may be sent."""
        managers = self._managers
        now_ms = managers.now_ms()
        for_time_ms = managers.record_time(self._context)
        for_bytes_ms = managers.fetch.record(self._user, self._client_id, size_bytes, now_ms)
        throttle_ms = max(for_time_ms, for_bytes_ms)
        if throttle_ms:
            managers.fetch.take_back(self._user, self._client_id, size_bytes, now_ms)
            manager = managers.fetch if for_bytes_ms > for_time_ms else managers.request
            managers.note_throttled(manager, self._context, throttle_ms)
        return throttle_ms
