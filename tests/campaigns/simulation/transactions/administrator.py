"""Somebody who describes and lists transactions and producers, and compares: with what was written, as the witness saw it.

Of a transaction that is being ended those partitions are described that have no marker yet; after a load all of them are to get
one, again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.topic_names import TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.hashing import partition_for
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.campaigns.simulation.transactions.checks import settled_shards
from tests.campaigns.simulation.transactions.fates import PREPARED
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World

_DESCRIBE = messages(ApiKey.DESCRIBE_TRANSACTIONS)
_LIST = messages(ApiKey.LIST_TRANSACTIONS)
_PRODUCERS = messages(ApiKey.DESCRIBE_PRODUCERS)
_SHOWN = "transactions and producers are shown as they are"
# By the numbers that the log has for them.
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


class Administrator:
    """Of one world. All is answered at once."""

    def __init__(self, world: World) -> None:
        self._world = world

    def look(self, server: Server) -> None:
        """Ask for everything that can be asked for."""
        self._describe_producers(server)
        shards = settled_shards(server, TRANSACTION_STATE_TOPIC)
        for plan in self._world.plan.producers:
            if partition_for(plan.transactional_id, self._world.plan.transaction_shards) in shards:
                self._describe(server, plan.transactional_id)
        if len(shards) == self._world.plan.transaction_shards:
            self._list(server)

    def _ask(self, server: Server, api_key: ApiKey, version: int, request: Any) -> Any:
        answers: list[Any] = []
        server.ask(api_key, version, request, answers.append)
        return answers[0]

    def _describe_producers(self, server: Server) -> None:
        for partition in server.partitions:
            if partition.log is None:
                continue
            name = partition.topic, partition.index
            request = _PRODUCERS.DescribeProducersRequest(
                topics=[_PRODUCERS.classes["request"]["TopicRequest"](name=partition.topic, partition_indexes=[partition.index])]
            )
            described = self._ask(server, ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions[0]
            shown = {
                (each.producer_id, each.producer_epoch): each.current_txn_start_offset
                for each in described.active_producers
                if each.current_txn_start_offset >= 0
            }
            there = {
                (producer_id, span.epoch): span.first_offset
                for producer_id, span in self._world.witness.partitions[name].open.items()
            }
            if described.error_code or shown != there:
                raise Violation(_SHOWN, f"{name}: open are {there}, and {shown} is described")

    def _describe(self, server: Server, transactional_id: str) -> None:
        request = _DESCRIBE.DescribeTransactionsRequest(transactional_ids=[transactional_id])
        described = self._ask(server, ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states[0]
        fates = self._world.witness.fates
        value = fates.latest.get(transactional_id)
        if value is None:
            if described.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise Violation(_SHOWN, f"{transactional_id} is not there, and described as {described}")
            return
        shown = (described.transaction_state, described.producer_id, described.producer_epoch, described.transaction_timeout_ms)
        there = (_STATES[value.status], value.producer_id, value.producer_epoch, value.timeout_ms)
        partitions = {(topic.topic, index) for topic in described.topics for index in topic.partitions}
        needed = set(value.partitions)
        if value.status in PREPARED:
            needed = fates.of_producer[value.producer_id].missing & self._world.witness.partitions.keys()
        if described.error_code or shown != there or not needed <= partitions <= value.partitions:
            raise Violation(_SHOWN, f"{transactional_id} is {value}, needs {needed}, and is described as {described}")

    def _list(self, server: Server) -> None:
        states = self._world.rng.choice(((), ("Ongoing",), ("CompleteCommit", "CompleteAbort")))
        response = self._ask(server, ApiKey.LIST_TRANSACTIONS, 1, _LIST.ListTransactionsRequest(state_filters=states))
        shown = {each.transactional_id: (each.producer_id, each.transaction_state) for each in response.transaction_states}
        there = {
            transactional_id: (value.producer_id, _STATES[value.status])
            for transactional_id, value in self._world.witness.fates.latest.items()
            if not states or _STATES[value.status] in states
        }
        if response.error_code or shown != there:
            raise Violation(_SHOWN, f"{there} are there, in {states or 'any state'}, and {shown} are listed")
