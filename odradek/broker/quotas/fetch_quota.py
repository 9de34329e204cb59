"""The fetch quota of one request: how much it may read, and whether what was found may be sent.

What a consumer is to get counts before it is sent. Over its quota it gets an answer without partitions and a throttle time, what
was counted is taken back, and its fetch session is as if it had not asked. The request's time is looked at in the same moment.
Followers are not held to client quotas.
"""

from typing import TYPE_CHECKING

from odradek.broker.quotas.quota_managers import QuotaManagers, user_of

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext


class FetchQuota:
    """One request's. Loop thread only."""

    __slots__ = ("_client_id", "_context", "_managers", "_user")

    def __init__(self, managers: QuotaManagers, context: "RequestContext") -> None:
        self._managers = managers
        self._context = context
        self._user = user_of(context)
        self._client_id = context.client_id or ""

    def most_bytes(self, asked_bytes: int) -> int:
        """How much to read at most. More would be over the quota even if the client had taken nothing before."""
        most = self._managers.fetch.most_in_window(self._user, self._client_id, self._managers.now_ms())
        return asked_bytes if most is None else int(min(most, asked_bytes))

    def throttle_ms(self, size_bytes: int) -> int:
        """How long the client is throttled for, instead of being sent an answer of so many bytes; 0 to send it."""
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
