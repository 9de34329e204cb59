"""Transactions back to back in a quiet cluster: each begins while the markers of the one before are still being replicated.

Nothing goes wrong, so a producer that does as it should is refused nothing. The answers to questions (AddPartitionsToTxn) and the
markers reach a partition's leader in either order, as the network's latency has it. At times a producer commits an offset at a
broker that does not coordinate its group, which begins no transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from tests.campaigns.cluster_simulation.client import GROUP, TRANSACTION
from tests.campaigns.cluster_simulation.producers import RETRIABLE
from tests.campaigns.cluster_simulation.transactions import NEW_OFFSETS, TransactionalProducer
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.ledger import Transaction

_DESCRIBE: Api[Any, Any] = Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0)
# With a network like that markers are written long before add.partitions.to.txn.retry.backoff.max.ms have passed.
_PROMPT_MS = 2.0
UNREFUSED = "a producer that does as it should is not refused in a quiet cluster"
NOT_BEGUN = "an offset commit begins no transaction at a broker that does not coordinate the group"


class HurriedProducer(TransactionalProducer):
    """Begins the next transaction as soon as one has ended."""

    def judge(self, api: ApiKey, code: int) -> None:
        """Raise Violation for what only faults are a reason for; leaders and coordinators have to be found even without any."""
        is_prompt = self.world.plan.longest_latency_ms <= _PROMPT_MS
        if (code == ErrorCode.CONCURRENT_TRANSACTIONS and is_prompt) or code not in RETRIABLE:
            raise Violation(UNREFUSED, f"{self.name}: {api.name} is answered {ErrorCode(code).name}")

    async def linger(self) -> None:
        """Waste no time."""

    async def transact(self, transaction: Transaction) -> None:
        """One transaction; before it, at times, an offset commit that is refused."""
        if not self.adds and self.rng.random() < 0.2:
            await self._commit_elsewhere(transaction)
        await super().transact(transaction)

    async def _commit_elsewhere(self, transaction: Transaction) -> None:
        coordinator = await self.coordinator(self.group, GROUP)
        other = self.rng.choice([each for each in self.world.broker_ids if each != coordinator])
        refused = await self.ask(other, NEW_OFFSETS, self.offset_commit(transaction))
        if refused is None or not refused.topics[0].partitions[0].error_code:
            # It coordinates the group by now.
            transaction.offset = transaction.number if refused is not None else transaction.offset
            return
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        described = await self.ask_coordinator(self.transactional_id, TRANSACTION, _DESCRIBE, request)
        if described is not None and described.transaction_states[0].transaction_state == "Ongoing":
            raise Violation(NOT_BEGUN, f"{self.name}: transaction {transaction.number} has begun at broker {other}")
        self.world.counts["offsets refused elsewhere"] += 1
