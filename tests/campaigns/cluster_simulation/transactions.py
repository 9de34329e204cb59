"""Transactional producers: each transaction writes to several partitions, and may commit a group's offset.

What goes wrong in a transaction ends it: the producer initialises again, which aborts what is open. Only the request to commit is
repeated until its answer is there, as real clients do.

Transactions back to back in a quiet cluster: each begins while the markers of the one before are still being replicated.

Nothing goes wrong, so a producer that does as it should is refused nothing. The answers to questions (AddPartitionsToTxn) and the
markers reach a partition's leader in either order, as the network's latency has it. At times a producer commits an offset at a
broker that does not coordinate its group, which begins no transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.end_txn import EndTxnRequest
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from odradek.protocol.message_types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.campaigns.cluster_simulation.client import GROUP, TRANSACTION
from tests.campaigns.cluster_simulation.producers import (
    INIT_PRODUCER_ID,
    NO_ANSWER,
    PRODUCE_ADDING,
    PRODUCE_NAMED,
    RETRIABLE,
    Batcher,
)
from tests.campaigns.cluster_simulation.witness import Transaction
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.witness import Place
    from tests.campaigns.cluster_simulation.world import World


_ADD_PARTITIONS: Api[Any, Any] = Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3)
_ADD_OFFSETS: Api[Any, Any] = Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 3)
_OLD_END: Api[Any, Any] = Api(ApiKey.END_TXN, 0, 4)
_NEW_END: Api[Any, Any] = Api(ApiKey.END_TXN, 5, 5)
_OLD_OFFSETS: Api[Any, Any] = Api(ApiKey.TXN_OFFSET_COMMIT, 3, 4)
NEW_OFFSETS: Api[Any, Any] = Api(ApiKey.TXN_OFFSET_COMMIT, 5, 5)
_TRIES = 4


UNFORGOTTEN = "a coordinator knows the partitions that the one before it has added"


class _Broken(Exception):
    """The transaction cannot go on."""


class TransactionalProducer(Batcher):
    """``adds`` is for clients that add partitions themselves (before KIP-890's second part)."""

    def __init__(self, world: World, name: str, transactional_id: str, *, adds: bool) -> None:
        super().__init__(world, name)
        self.transactional_id = transactional_id
        self.group = f"of-{transactional_id}"
        self.adds = adds
        self._added: set[Place] = set()

    async def work(self) -> None:
        """Make transactions as long as the world is in trouble, and one more."""
        await self._initialise()
        while self.world.wants_more(self):
            transaction = Transaction(self.name, len(self.world.ledger.transactions) + 1)
            self.world.ledger.transactions.append(transaction)
            try:
                await self.transact(transaction)
            except _Broken as broken:
                self.world.note("%s: transaction %s breaks: %s", self.name, transaction.number, broken)
                self.world.counts["transactions broken"] += 1
                if transaction.fate == "open":
                    transaction.fate = "aborted"
                await self._initialise()
            await self.sleep(self.rng.random() * self.world.plan.think_ms)

    async def _initialise(self) -> None:
        """Become the producer of the transactional id: what is open is aborted."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.world.plan.transaction_timeout_ms
        )
        while True:
            response = await self.ask_coordinator(self.transactional_id, TRANSACTION, INIT_PRODUCER_ID, request)
            if response is not None and not response.error_code:
                break
            await self.look_for_coordinator(self.transactional_id, TRANSACTION)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.sequences.clear()
        self.world.note("%s has producer id %s, epoch %s", self.name, self.producer_id, self.epoch)
        self.world.ledger.given(self.producer_id, self.epoch, self.transactional_id)

    def judge(self, api: ApiKey, code: int) -> None:
        """Raise Violation for a batch of a partition that is said to be in no transaction: it was added before."""
        if api == ApiKey.PRODUCE and code == ErrorCode.INVALID_TXN_STATE:
            raise Violation(UNFORGOTTEN, f"{self.name}: a batch is answered INVALID_TXN_STATE")

    async def linger(self) -> None:
        """Sometimes take longer than a transaction may."""
        if self.rng.random() < 0.15:
            await self.sleep(self.rng.random() * 2 * self.world.plan.transaction_timeout_ms)

    async def transact(self, transaction: Transaction) -> None:
        """One transaction. Raises _Broken."""
        self._added.clear()
        places = self.rng.sample(self.world.places, self.rng.randint(1, min(3, len(self.world.places))))
        for place in places:
            await self._write(transaction, place)
        if self.rng.random() < 0.5:
            await self._commit_offset(transaction)
        await self.linger()
        commits = self.rng.random() < 0.8
        await self._end(transaction, commits=commits)

    async def _write(self, transaction: Transaction, place: Place) -> None:
        if self.adds and place not in self._added:
            await self._add(place)
        values = self.new_values()
        transaction.values.setdefault(place, []).extend(values)
        batch = self.batch(place, values, transactional=True)
        api = PRODUCE_NAMED if self.adds else PRODUCE_ADDING
        for _ in range(_TRIES):
            code, _ = await self.produce(place, batch, api=api, transactional_id=self.transactional_id)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self.were_taken(place, values)
                return
            if code != NO_ANSWER:
                self.judge(api.key, int(code))
            if code != NO_ANSWER and code not in RETRIABLE:
                raise _Broken(f"{place} is answered {ErrorCode(int(code)).name}")
            await self.look_again(place)
        raise _Broken(f"{place} is not acknowledged")

    async def _ask(self, api: Api[Any, Any], request: Any, codes: Any, *, tries: int = _TRIES) -> Any:
        """The response without an error; ``codes`` finds a response's. Raises _Broken."""
        for _ in range(tries):
            response = await self.ask_coordinator(self.transactional_id, TRANSACTION, api, request)
            found = [] if response is None else [code for code in codes(response) if code]
            if response is not None and not found:
                return response
            for code in found:
                self.judge(api.key, code)
            if response is not None and not set(found) <= RETRIABLE:
                raise _Broken(f"{api.key.name} is answered {[ErrorCode(code).name for code in found]}")
            await self.look_for_coordinator(self.transactional_id, TRANSACTION)
        raise _Broken(f"{api.key.name} is not answered")

    async def _add(self, place: Place) -> None:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[AddPartitionsToTxnTopic(name=place[0], partitions=[place[1]])],
        )
        old = AddPartitionsToTxnRequest(transactions=[transaction])
        await self._ask(_ADD_PARTITIONS, old, _codes_of_added)
        self._added.add(place)

    def offset_commit(self, transaction: Transaction) -> TxnOffsetCommitRequest:
        """The request that commits the transaction's number as an offset of its group."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=transaction.number)
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.world.topic, partitions=[partition])],
        )

    async def _commit_offset(self, transaction: Transaction) -> None:
        if self.adds:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=self.group,
            )
            await self._ask(_ADD_OFFSETS, request, lambda response: [response.error_code])
        transaction.offset = transaction.number
        commit = self.offset_commit(transaction)
        for _ in range(_TRIES):
            response = await self.ask_coordinator(self.group, GROUP, _OLD_OFFSETS if self.adds else NEW_OFFSETS, commit)
            if response is not None:
                [topic] = response.topics
                [partition] = topic.partitions
                if not partition.error_code:
                    return
                self.judge(ApiKey.TXN_OFFSET_COMMIT, partition.error_code)
                if partition.error_code not in RETRIABLE:
                    raise _Broken(f"TXN_OFFSET_COMMIT is answered {ErrorCode(partition.error_code).name}")
            await self.look_for_coordinator(self.group, GROUP)
        raise _Broken("TXN_OFFSET_COMMIT is not answered")

    async def _end(self, transaction: Transaction, *, commits: bool) -> None:
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commits)
        api = _OLD_END if self.adds else _NEW_END
        if commits:
            transaction.fate = "unknown"
        response = await self._ask(api, request, lambda response: [response.error_code], tries=1_000)
        transaction.fate = "committed" if commits else "aborted"
        self.world.note("%s: transaction %s is %s", self.name, transaction.number, transaction.fate)
        self.world.counts[f"transactions {transaction.fate}"] += 1
        if not self.adds and response.producer_id >= 0:
            if (response.producer_id, response.producer_epoch) != (self.producer_id, self.epoch):
                self.producer_id, self.epoch = response.producer_id, response.producer_epoch
                self.world.ledger.given(self.producer_id, self.epoch, self.transactional_id)
            self.sequences.clear()


def _codes_of_added(response: Any) -> list[int]:
    return [
        partition.partition_error_code
        for topic in response.results_by_transaction[0].topic_results
        for partition in topic.results_by_partition
    ]


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
