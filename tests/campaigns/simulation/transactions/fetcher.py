"""A consumer of all partitions, as a client is: it fetches committed records, in a fetch session (KIP-227), by topic ids.

A session is incremental: a request names only the partitions that are new, gone, or at another offset than the last request said.
An answer may get lost on its way; the session's epoch is then refused, as a session is that the broker has forgotten, and the
consumer begins another.

Somebody who describes and lists transactions and producers, and compares: with what was written, as the witness saw it.

Of a transaction that is being ended those partitions are described that have no marker yet; after a load all of them are to get
one, again.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for
from odradek.protocol.messages import messages
from tests.campaigns.simulation.transactions.checks import settled_shards
from tests.campaigns.simulation.transactions.ledger import PREPARED
from tests.campaigns.simulation.transactions.witness import CommittedReader
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.broker.replica.partition import Partition
    from tests.campaigns.simulation.transactions.ledger import Incarnation
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World


_FETCH = messages(ApiKey.FETCH)
_READ_COMMITTED = 1
_FOUND = "a fetch finds what is stable"
_SESSION_ERRORS = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
_LOSS_SHARE = 0.05
_READ_SHARE = 0.02
# Partitions that are not read for now: offline, or deleted while they were in the session.
_PASSING = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class Fetcher:
    """The one consumer of a world. ``readers`` have what was read of each partition until its deletion."""

    def __init__(self, world: World) -> None:
        self.readers: dict[Incarnation, CommittedReader] = {}
        self._world = world
        # Of its own, so that what it draws changes no history.
        self._rng = Random(f"fetches {world.seed}")
        self._session_id = 0
        self._epoch = 0
        # The offsets that the session has.
        self._asked: dict[Incarnation, int] = {}

    def may_read(self) -> bool:
        """Whether it reads on at this moment, too."""
        return self._rng.random() < _READ_SHARE

    def read_on(self, partitions: Iterable[Partition], max_bytes: int) -> None:
        """Read up to the present last stable offsets. Raises Violation."""
        ends = {
            (partition.topic_id, partition.index): partition.last_stable_offset
            for partition in partitions
            if partition.log is not None and not partition.topic.startswith("__")
        }
        for incarnation in ends:
            self.readers.setdefault(incarnation, CommittedReader())
        while any(self.readers[incarnation].offset < end for incarnation, end in ends.items()):
            if not self._fetch(ends, max_bytes):
                raise Violation(_FOUND, f"{self._asked}, and nothing is found below {ends}")

    def _fetch(self, ends: Mapping[Incarnation, int], max_bytes: int) -> bool:
        """One request; whether it was any use."""
        if not self._epoch:
            self._asked.clear()
        wanted = {incarnation: self.readers[incarnation].offset for incarnation in ends}
        gone = self._asked.keys() - wanted.keys()
        request = _FETCH.FetchRequest(
            max_bytes=max_bytes,
            isolation_level=_READ_COMMITTED,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[
                _FETCH.FetchTopic(
                    topic_id=topic_id,
                    partitions=[_FETCH.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)],
                )
                for (topic_id, index), offset in wanted.items()
                if self._asked.get((topic_id, index)) != offset
            ],
            forgotten_topics_data=[
                _FETCH.ForgottenTopic(topic_id=topic_id, partitions=[index]) for topic_id, index in sorted(gone, key=str)
            ],
        )
        answers: list[Any] = []
        if self._world.server is not None:
            self._world.server.ask(ApiKey.FETCH, 17, request, answers.append)
        (response,) = answers
        self._asked = wanted
        if response.error_code in _SESSION_ERRORS and self._epoch:
            self._world.counts["fetch sessions begun anew"] += 1
            self._session_id = self._epoch = 0
            return True
        if response.error_code != ErrorCode.NONE:
            raise Violation(_FOUND, f"{request} is answered {response}")
        if self._rng.random() < _LOSS_SHARE:
            self._world.counts["fetches lost"] += 1
            return True
        self._session_id = response.session_id
        self._epoch += 1
        return self._take(response)

    def _take(self, response: Any) -> bool:
        is_any = False
        for topic in response.responses:
            for data in topic.partitions:
                incarnation = topic.topic_id, data.partition_index
                if incarnation not in self._asked:
                    raise Violation(_FOUND, f"nobody asked for {incarnation}")
                if data.error_code not in {ErrorCode.NONE, *_PASSING}:
                    raise Violation(_FOUND, f"{incarnation} is answered {ErrorCode(data.error_code).name}")
                if data.records:
                    is_any = True
                    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
                    records = data.records if isinstance(data.records, bytes) else data.records.read()
                    self.readers[incarnation].take(records, deque(sorted(aborted, key=itemgetter(1))))
                    self._world.counts["fetches with records"] += 1
        return is_any


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
