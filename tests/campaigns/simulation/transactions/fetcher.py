"""A consumer of all partitions, as a client is: it fetches committed records, in a fetch session (KIP-227), by topic ids.

A session is incremental: a request names only the partitions that are new, gone, or at another offset than the last request said.
An answer may get lost on its way; the session's epoch is then refused, as a session is that the broker has forgotten, and the
consumer begins another.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.campaigns.simulation.transactions.reader import CommittedReader
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.broker.replica.partition import Partition
    from tests.campaigns.simulation.transactions.ledger import Incarnation
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
