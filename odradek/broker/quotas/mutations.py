"""The quota of controller mutations: partitions created and deleted, and the throttling of clients (KIP-599).

    strict        if the client owes tokens, its request changes nothing: THROTTLING_QUOTA_EXCEEDED. Else it may take any number
    permissive    for versions without this error: everything is changed, and the client is throttled for its debt

A validation counts like the change itself. Pure except for ``clock``. Kafka's classes are ControllerMutationQuotaManager,
StrictControllerMutationQuota and PermissiveControllerMutationQuota.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from odradek.broker.quotas.client_quota_manager import ClientQuotaManager, QuotaWindow
from odradek.broker.quotas.sampled import bucket_throttle_ms
from odradek.controller.metadata.client_quotas import CONTROLLER_MUTATION_RATE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.quotas.client_quota_manager import Sensor
    from odradek.controller.metadata.client_quotas import ClientQuotas

# The first versions whose clients know THROTTLING_QUOTA_EXCEEDED.
STRICT_FROM: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}


class MutationQuota:
    """The quota of one request, charged to its client's token bucket."""

    __slots__ = ("_clock", "_is_strict", "_recorded_ms", "_sensor", "_throttle_ms")

    def __init__(self, sensor: "Sensor", clock: Callable[[], int], *, is_strict: bool) -> None:
        self._sensor = sensor
        self._clock = clock
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def take(self, partitions: int) -> None:
        """Take a token for each of ``partitions``. Raises KafkaError: THROTTLING_QUOTA_EXCEEDED; then none are taken."""
        sensor, now_ms = self._sensor, self._clock()
        if self._is_strict:
            tokens = sensor.bucket.tokens(sensor.limit, now_ms)
            if tokens < 0:
                self._note(tokens, now_ms)
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client changed too many partitions recently.")
        sensor.last_ms = now_ms
        sensor.samples.record(partitions, now_ms)
        sensor.bucket.take(partitions, sensor.limit, now_ms)
        tokens = sensor.bucket.tokens(sensor.limit, now_ms)
        if not self._is_strict and tokens < 0:
            self._note(tokens, now_ms)

    @property
    def throttle_ms(self) -> int:
        """The time from now for which the client has to wait."""
        return max(0, self._throttle_ms - (self._clock() - self._recorded_ms))

    def _note(self, tokens: float, now_ms: int) -> None:
        self._throttle_ms = bucket_throttle_ms(tokens, self._sensor.limit)
        self._recorded_ms = now_ms


class MutationQuotaManager(ClientQuotaManager):
    """The token buckets of the clients of one controller."""

    def __init__(self, quotas: "ClientQuotas", window: QuotaWindow, clock: Callable[[], int]) -> None:
        super().__init__(CONTROLLER_MUTATION_RATE, quotas, window, is_bucket=True)
        self._clock = clock

    def quota_for(self, user: str, client_id: str, api_key: ApiKey, version: int) -> MutationQuota | None:
        """Return the quota of a request; None if its client has no quota."""
        sensor = self.sensor(user, client_id, self._clock())
        if sensor is None:
            return None
        return MutationQuota(sensor, self._clock, is_strict=version >= STRICT_FROM[api_key])
