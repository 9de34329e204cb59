"""The switch of quotas in a broker or a controller: on while the metadata image has a quota for users or client ids.

Without quotas there is no gate, nothing is counted, and the counting modules are not imported. Kafka keeps its sensors when the
last quota is gone; here they go with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.quotas.client_quota_manager import MutationQuota
    from odradek.broker.quotas.throttle_gate import FetchQuota, QuotaManagers, ThrottleGate
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.client_quotas import ClientQuotas
    from odradek.controller.metadata.decisions import Take
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.timing.clock import Clock

    GateChange: TypeAlias = Callable[[ThrottleGate], None]

_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)


class QuotaSwitch:
    """A MetadataPublisher. ``managers`` is None while there are no quotas. Loop thread only."""

    __slots__ = ("_add_gate", "_clock", "_config", "_gate", "_quotas", "_remove_gate", "managers")

    def __init__(
        self,
        quotas: ClientQuotas,
        config: BrokerConfig,
        clock: Clock,
        add_gate: GateChange | None = None,
        remove_gate: GateChange | None = None,
    ) -> None:
        """``add_gate`` and ``remove_gate`` are the dispatcher's. Without them, quotas apply to changes of topics only."""
        self._quotas = quotas
        self._config = config
        self._clock = clock
        self._add_gate = add_gate
        self._remove_gate = remove_gate
        self._gate: ThrottleGate | None = None
        self.managers: QuotaManagers | None = None
        self._look()

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002  the quotas stay the same object
        """Add or remove the throttle gate after a change of quotas."""
        if delta.quotas:
            self._look()

    def fetch_quota(self, context: RequestContext) -> FetchQuota | None:
        """Return the quota of a consumer's fetch; None while there are no quotas, or for the broker's own fetches."""
        if self.managers is None or context.session.is_own:
            return None
        from odradek.broker.quotas.throttle_gate import FetchQuota  # 2.8 ms

        return FetchQuota(self.managers, context)

    def mutation_quota(self, context: RequestContext) -> MutationQuota | None:
        """Return the quota of a request that changes topics; None without one."""
        return None if self.managers is None else self.managers.mutation_quota(context)

    def take_of(self, context: RequestContext) -> Take | None:
        """Return the function that charges a topic change to its client's token bucket; None without a quota."""
        quota = self.mutation_quota(context)
        return None if quota is None else quota.take

    def _look(self) -> None:
        has_quotas = not all(self._quotas.is_empty(key) for key in _KEYS)
        if has_quotas is (self.managers is not None):
            return
        if not has_quotas:
            self.managers = None
            if self._remove_gate is not None and self._gate is not None:
                self._remove_gate(self._gate)
            return
        from odradek.broker.quotas.throttle_gate import QuotaManagers, ThrottleGate  # 2.8 ms

        self.managers = QuotaManagers(self._quotas, self._config, self._clock)
        if self._add_gate is not None:
            self._gate = ThrottleGate(self.managers, self._clock)
            self._add_gate(self._gate)
