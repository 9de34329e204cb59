"""Controller mutations: partitions that are created and deleted, and when a client has to wait with more (KIP-599).

    strict        a request of a client that owes tokens changes nothing: THROTTLING_QUOTA_EXCEEDED. Else it may take any number
    permissive    of versions that do not know the error: all is changed, and the client is throttled for what it owes

A validation counts as the change would. Pure but for ``clock``. Kafka's classes are ControllerMutationQuotaManager,
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
    """What one request takes of its client's tokens."""

    __slots__ = ("_clock", "_is_strict", "_recorded_ms", "_sensor", "_throttle_ms")

    def __init__(self, sensor: "Sensor", clock: Callable[[], int], *, is_strict: bool) -> None:
        self._sensor = sensor
        self._clock = clock
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def take(self, partitions: int) -> None:
        """Take the tokens for so many partitions. KafkaError: THROTTLING_QUOTA_EXCEEDED; then none are taken."""
        sensor, now_ms = self._sensor, self._clock()
        if self._is_strict:
            tokens = sensor.bucket.tokens(sensor.limit, now_ms)
            if tokens < 0:
                self._note(tokens, now_ms)
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client has changed too many partitions of late.")
        sensor.last_ms = now_ms
        sensor.samples.record(partitions, now_ms)
        sensor.bucket.take(partitions, sensor.limit, now_ms)
        tokens = sensor.bucket.tokens(sensor.limit, now_ms)
        if not self._is_strict and tokens < 0:
            self._note(tokens, now_ms)

    @property
    def throttle_ms(self) -> int:
        """How long the client has to wait from now on."""
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
        """What a request is held to; None where no quota holds for its client."""
        sensor = self.sensor(user, client_id, self._clock())
        if sensor is None:
            return None
        return MutationQuota(sensor, self._clock, is_strict=version >= STRICT_FROM[api_key])
