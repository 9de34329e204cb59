"""The quota managers of one broker or controller. They exist while the metadata image has a quota."""

from typing import TYPE_CHECKING

from odradek.broker.quotas.client_quota_manager import SHOWN_SAMPLE_MS, SHOWN_SAMPLES, ClientQuotaManager, QuotaWindow
from odradek.broker.quotas.mutations import MutationQuota, MutationQuotaManager
from odradek.broker.quotas.sampled import Samples
from odradek.controller.metadata.client_quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

if TYPE_CHECKING:
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.context import RequestContext
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
