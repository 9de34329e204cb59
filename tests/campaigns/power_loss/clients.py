"""The clients in a workload, and the responses that they record.

Each request may fail. An unacknowledged change is recorded as requested, and may be present or absent later.

Clients that ask a broker and are answered, one by one or many at a time.

A client is a coroutine that awaits the response to each of its requests (``ask``). Its code after a response runs when the
response is given: what it notes then, it notes before anything else happens to the disk. Its next request comes in a later turn
of the loop, as through a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import iter_batches, read_header
from odradek.protocol.records import Record, build_batch
from odradek.timing.reply import Reply
from tests.campaigns.power_loss.ledger import Commits, Transaction
from tests.campaigns.power_loss.node import TRANSACTION_TIMEOUT_MS, Question
from tests.campaigns.simulation.transactions import requests

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Mapping, Sequence

    from tests.campaigns.power_loss.ledger import Promises
    from tests.campaigns.power_loss.node import Node
    from tests.campaigns.power_loss.run import Run


Client = "Coroutine[Question, Any, Any]"


class _Ask:
    """Awaited, it gives the response."""

    __slots__ = ("_question",)

    def __init__(self, question: Question) -> None:
        self._question = question

    def __await__(self) -> Generator[Question, Any, Any]:
        response = yield self._question
        return response


def ask(api_key: ApiKey, version: int, request: Any) -> _Ask:
    """One request. To be awaited by a client."""
    return _Ask(Question(api_key, version, request))


class Talk:
    """A client under way with a broker. ``result`` is what it returned."""

    def __init__(self, node: Node, client: Coroutine[Question, Any, Any]) -> None:
        self.is_over = False
        self.result: Any = None
        self._error: Exception | None = None
        self._node = node
        self._client = client
        self._go_on(None)

    def _go_on(self, response: Any) -> None:
        if self.is_over:
            return
        try:
            question = self._client.send(response)
        except StopIteration as end:
            self.is_over = True
            self.result = end.value
        except Exception as error:  # noqa: BLE001  the broker's code, which calls this, is not to see it
            self.is_over = True
            self._error = error
        else:
            self._node.loop.call_soon(self._ask, question)

    def _ask(self, question: Question) -> None:
        if not self._node.is_running:
            self.close()
        elif not self.is_over:
            response = self._node.handle(question)
            if isinstance(response, Reply):
                response.when_done(self._go_on)
            else:
                self._go_on(response)

    def ensure_good(self) -> None:
        """Raise what the client has raised."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ask no more: the broker is gone."""
        if not self.is_over:
            self.is_over = True
            self._client.close()


_DELETE = messages(ApiKey.DELETE_RECORDS)
_FETCH = messages(ApiKey.FETCH)
_INIT = messages(ApiKey.INIT_PRODUCER_ID)
_PRODUCE_VERSION = 12
_END_VERSION = 5
_FETCH_VERSION = 12
_FETCH_BYTES = 10_000

Partition = tuple[str, int]


async def produce(
    run: Run, batches: Mapping[Partition, bytes], *, transactional_id: str | None = None, version: int = _PRODUCE_VERSION
) -> dict[Partition, ErrorCode]:
    """Send one request; returns its partitions' error codes. Acknowledged records are promised from then on."""
    return {name: code for name, (code, _) in (await _produce(run, batches, transactional_id, version)).items()}


async def _produce(
    run: Run, batches: Mapping[Partition, bytes], transactional_id: str | None, version: int
) -> dict[Partition, tuple[ErrorCode, int]]:
    """Error code and base offset of each partition."""
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for (topic, index), batch in batches.items():
        topics.setdefault(topic, []).append((index, batch))
    response = await ask(ApiKey.PRODUCE, version, ProduceRequest(transactional_id, -1, 1_000, list(topics.items())))
    answers = {}
    for topic in response.responses:
        for partition in topic.partition_responses:
            name = topic.name, partition.index
            answers[name] = ErrorCode(partition.error_code), partition.base_offset
            if partition.error_code == ErrorCode.NONE:
                run.acknowledge(name, partition.base_offset + read_header(batches[name]).record_count)
    return answers


async def consume(run: Run, name: Partition, offset: int) -> int:
    """Fetch once from ``offset``; returns the next one. Records that a consumer was shown are promised, too."""
    asked = _FETCH.FetchPartition(partition=name[1], fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    topic = _FETCH.FetchTopic(topic=name[0], partitions=[asked])
    request = _FETCH.FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=_FETCH_BYTES, topics=[topic])
    response = await ask(ApiKey.FETCH, _FETCH_VERSION, request)
    partition = response.responses[0].partitions[0]
    if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return max(partition.log_start_offset, 0)
    if partition.error_code != ErrorCode.NONE or not partition.records:
        return offset
    records = partition.records
    for _, header in iter_batches(records if isinstance(records, bytes) else records.read()):
        offset = header.next_offset
    run.acknowledge(name, offset)
    return offset


async def put(run: Run, name: Partition, pairs: Mapping[bytes, bytes | None]) -> bool:
    """Send one batch to a compacted log, with a record for each key; None deletes."""
    now_ms = run.clock.now_ms()
    records = [Record(timestamp=now_ms, key=key, value=value) for key, value in pairs.items()]
    code, first_offset = (await _produce(run, {name: build_batch(records)}, None, _PRODUCE_VERSION))[name]
    if code != ErrorCode.NONE:
        return False
    partition = run.key(name)
    told = [(record.key or b"", (first_offset + number, record.value is None)) for number, record in enumerate(records)]

    def tell(promises: Promises) -> None:
        by_key = promises.keyed.setdefault(partition, {})
        for key, record in told:
            by_key.setdefault(key, []).append(record)

    run.note(tell)
    return True


def plain(run: Run, *values: bytes, key: bytes | None = None, compression: int = 0) -> bytes:
    """A batch of a producer without an id."""
    now_ms = run.clock.now_ms()
    return build_batch([Record(timestamp=now_ms, key=key, value=value) for value in values], compression=compression)


class Producer:
    """An idempotent producer, or a transactional one with a ``transactional_id``. ``identity`` is None before InitProducerId."""

    def __init__(self, run: Run, transactional_id: str | None = None) -> None:
        self.transactional_id = transactional_id
        self.identity: tuple[int, int] | None = None
        self.transaction: Transaction | None = None
        self._run = run
        self._sequences: dict[Partition, int] = {}

    async def begin(self) -> bool:
        """Get a producer id if there is none; returns whether there is one now."""
        if self.identity is None:
            response = await ask(
                ApiKey.INIT_PRODUCER_ID,
                4,
                _INIT.InitProducerIdRequest(
                    transactional_id=self.transactional_id,
                    transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                    producer_id=-1,
                    producer_epoch=-1,
                ),
            )
            if response.error_code != ErrorCode.NONE:
                return False
            self._take(response.producer_id, response.producer_epoch)
        if self.transactional_id is not None and self.transaction is None:
            self.transaction = Transaction(set())
            number = len(self._run.ledger.promises.transactions)
            self._number = number
            self._run.note(lambda promises: promises.transactions.append(Transaction(set())))
        return True

    def _take(self, producer_id: int, producer_epoch: int) -> None:
        if self.identity is None or self.identity != (producer_id, producer_epoch):
            self._sequences.clear()
        self.identity = producer_id, producer_epoch

    async def send(self, values: Mapping[Partition, Sequence[bytes]]) -> bool:
        """Send one batch to each partition, in the transaction if there is one; returns whether all were acknowledged."""
        if self.identity is None:
            return False
        now_ms = self._run.clock.now_ms()
        batches = {}
        for name, of_partition in values.items():
            batches[name] = build_batch(
                [Record(timestamp=now_ms, key=b"k", value=value) for value in of_partition],
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
                base_sequence=self._sequences.get(name, 0),
                transactional=self.transactional_id is not None,
            )
        if self.transaction is not None:
            wrote = {value for of_partition in values.values() for value in of_partition}
            number = self._number
            self._run.note(lambda promises: promises.transactions[number].values.update(wrote))
        codes = await produce(self._run, batches, transactional_id=self.transactional_id)
        for name, code in codes.items():
            if code == ErrorCode.NONE:
                self._sequences[name] = self._sequences.get(name, 0) + len(values[name])
        return all(code == ErrorCode.NONE for code in codes.values())

    async def commit_offsets(self, group_id: str, offsets: Mapping[Partition, int]) -> bool:
        """Commit offsets within the transaction."""
        if self.identity is None or self.transactional_id is None:
            return False
        request = requests.txn_offset_commit(self.transactional_id, self.identity, group_id, offsets)
        response = await ask(ApiKey.TXN_OFFSET_COMMIT, 5, request)
        return requests.offsets_committed(response) == ErrorCode.NONE

    async def end(self, *, commit: bool, offsets: Mapping[tuple[str, str, int], int] | None = None) -> bool:
        """End the transaction, which commits ``offsets``. Returns whether the response confirmed it."""
        if self.identity is None or self.transactional_id is None or self.transaction is None:
            return False
        number = self._number
        decision = "commit" if commit else "abort"

        def decide(promises: object) -> None:
            promises.transactions[number].decision = decision  # type: ignore[attr-defined]

        self._run.note(decide)
        if commit:
            for name, offset in (offsets or {}).items():
                ask_commit(self._run, name, offset)
        self.transaction = None
        request = requests.end(self.transactional_id, self.identity, commit=commit)
        response = await ask(ApiKey.END_TXN, _END_VERSION, request)
        if response.error_code != ErrorCode.NONE:
            self.identity = None
            return False
        self._take(response.producer_id, response.producer_epoch)

        def tell(promises: object) -> None:
            promises.transactions[number].is_told = True  # type: ignore[attr-defined]

        self._run.note(tell)
        if commit:
            for name in offsets or {}:
                told_commit(self._run, name)
        return True

    def forget(self) -> None:
        """Begin anew with the next transaction, as a client does after a fatal error."""
        self.identity = None
        self.transaction = None


def ask_commit(run: Run, name: tuple[str, str, int], offset: int) -> None:
    """From now on ``offset`` may be the committed one."""
    run.note(lambda promises: promises.commits.setdefault(name, Commits()).asked.append(offset))


def told_commit(run: Run, name: tuple[str, str, int]) -> None:
    """From now on the last requested offset must be the committed one."""

    def tell(promises: object) -> None:
        commits = promises.commits[name]  # type: ignore[attr-defined]
        commits.told = len(commits.asked)

    run.note(tell)


async def commit(run: Run, group_id: str, partition: Partition, offset: int) -> bool:
    """Commit an offset without membership of the group."""
    name = group_id, *partition
    ask_commit(run, name, offset)
    response = await ask(ApiKey.OFFSET_COMMIT, 8, requests.commit(group_id, partition, offset))
    code = response.topics[0].partitions[0].error_code
    if code == ErrorCode.NONE:
        told_commit(run, name)
    return code == ErrorCode.NONE


async def committed(run: Run, group_id: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """A group's offsets according to OffsetFetch; -1 for none."""
    response = await ask(ApiKey.OFFSET_FETCH, 8, requests.fetch(group_id, partitions, require_stable=False))
    (group,) = response.groups
    return {(topic.name, each.partition_index): each.committed_offset for topic in group.topics for each in topic.partitions}


async def delete_records(run: Run, partition: Partition, offset: int) -> None:
    """Move a partition's log start offset to ``offset``."""
    key = run.key(partition)

    def intend(promises: object) -> None:
        asked = promises.starts_asked  # type: ignore[attr-defined]
        asked[key] = max(asked.get(key, 0), offset)

    run.note(intend)
    topic = _DELETE.DeleteRecordsTopic(
        name=partition[0], partitions=[_DELETE.DeleteRecordsPartition(partition_index=partition[1], offset=offset)]
    )
    response = await ask(ApiKey.DELETE_RECORDS, 2, _DELETE.DeleteRecordsRequest(topics=[topic], timeout_ms=1_000))
    (result,) = response.topics[0].partitions
    if result.error_code == ErrorCode.NONE:

        def tell(promises: Promises) -> None:
            promises.deleted_below[key] = max(promises.deleted_below.get(key, 0), result.low_watermark)

        run.note(tell)
