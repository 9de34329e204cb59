"""The end of a history: all is mended, and all has to come right.

Every broker serves, every client has what it asked for, every replica is in sync and has the same bytes, no transaction is open.
Then all is read, by a client, and compared with what the cluster has acknowledged.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.campaigns.cluster_simulation.consumers import READ, Committer, PartitionReader, Reader
from tests.campaigns.cluster_simulation.witness import COMMITTED, WATERMARK
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.faults import Faults
    from tests.campaigns.cluster_simulation.witness import Place, Transaction
    from tests.campaigns.cluster_simulation.world import World

REST = "all comes to rest"
ACKNOWLEDGED = "what is acknowledged is read where it was put"
ONCE = "what is sent in order is read in order, and once"
ATOMIC = "a transaction is read whole or not at all"
SAME = "all replicas have the same bytes"
# More than the longest timeouts together: a request that nobody answers takes 30 s.
_PATIENCE_MS = 90_000


def end(world: World, faults: Faults) -> None:
    """Come to an end. Raises Violation."""
    world.is_in_trouble = False
    faults.end()
    world.note("all is mended")
    if not world.run(_PATIENCE_MS, lambda: not why_restless(world)):
        raise Violation(REST, why_restless(world))
    world.note("all is at rest")
    world.witness.check_kept(world.brokers)
    _check_bytes(world)
    everything = _read_all(world, is_committed=False)
    committed = _read_all(world, is_committed=True)
    for place in world.places:
        _check_acknowledged(world, place, everything[place])
        _check_order(world, place, everything[place])
        _check_readers(world, place, committed[place])
    _check_transactions(world, committed)
    _check_offsets(world)


def why_restless(world: World) -> str:
    """What is still to come; nothing where all is at rest."""
    for machine in world.machines:
        if not machine.is_serving:
            return f"{machine.name} does not serve"
    for client in world.clients:
        if client.process.tasks:
            return f"{client.name} is not done"
    return _why_not_alike(world)


def _why_not_alike(world: World) -> str:
    brokers = {machine.node_id: machine.core for machine in world.brokers}
    image = next(iter(brokers.values())).controller.image  # type: ignore[union-attr]
    for topic in image.topics.values():
        for index, record in topic.partitions.items():
            name = f"{topic.name}-{index}"
            if (
                record.leader < 0
                or sorted(record.isr) != sorted(record.replicas)
                or record.adding_replicas
                or record.removing_replicas
            ):
                return f"{name}: {record}"
            ends = []
            for node_id in record.replicas:
                core = brokers[node_id]
                partition = None if core is None else core.partitions.get(topic.name, index)
                if partition is None or partition.log is None:
                    return f"{name}: {node_id} has no log"
                if (partition.leader is not None) != (node_id == record.leader):
                    return f"{name}: {node_id} does not know who leads"
                ends += [partition.log.log_end_offset, partition.high_watermark]
                if partition.last_stable_offset < partition.high_watermark:
                    return f"{name}: {node_id} has an open transaction at {partition.last_stable_offset}"
            if len(set(ends)) > 1:
                return f"{name}: the ends of logs, and high watermarks, are {ends}"
    return ""


def _check_bytes(world: World) -> None:
    found: dict[tuple[str, int], dict[int, bytes]] = {}
    for machine in world.brokers:
        for partition in machine.core.partitions:  # type: ignore[union-attr]
            log = partition.log
            if log is not None:
                data = b"".join(bytes(segment.file.pread(segment.size, 0)) for segment in log.segments)
                found.setdefault((partition.topic, partition.index), {})[machine.node_id] = data
    for (topic, index), of in found.items():
        if len(set(of.values())) > 1:
            raise Violation(SAME, f"{topic}-{index}: { ({node_id: len(data) for node_id, data in of.items()}) }")


def _read_all(world: World, *, is_committed: bool) -> dict[Place, PartitionReader]:
    """What a client reads from the beginning to the end."""
    reader = Reader(world, f"last reader {is_committed}", is_committed=is_committed)

    async def read() -> None:
        for place in world.places:
            while (last := await reader.end_of(place)) is None:
                await reader.look_again(place)
            if last < world.ledger.watermarks[place]:
                raise Violation(WATERMARK, f"{place} ends at {last}, and was seen to end at {world.ledger.watermarks[place]}")
            while reader.partitions[place].offset < last:
                if not await reader.read(place):
                    await reader.look_again(place)

    _do(world, reader, read())
    return reader.partitions


def _do(world: World, client: Reader | Committer, work: object) -> None:
    world.clients.append(client)
    client.begin(work)
    if not world.run(_PATIENCE_MS, lambda: not client.process.tasks):
        raise Violation(REST, f"{client.name} is not done")


def _check_acknowledged(world: World, place: Place, reader: PartitionReader) -> None:
    read = dict(reader.records)
    for offset, value in world.ledger.acknowledged[place].items():
        if read.get(offset) != value:
            raise Violation(ACKNOWLEDGED, f"{place} {offset}: {value!r} was acknowledged, {read.get(offset)!r} is read")


def _check_order(world: World, place: Place, reader: PartitionReader) -> None:
    """Of each producer all is there that it sent; of one that was killed, what it sent last may not be."""
    values = [value for _, value in reader.records]
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise Violation(ONCE, f"{place}: {twice[:3]} is there twice")
    alive = {client.name for client in world.clients if not client.process.is_dead}
    for (name, at), sent in world.ledger.sent.items():
        if at == place:
            mine = set(sent)
            there = [value for value in values if value in mine]
            if there != sent[: len(there)] or (name in alive and len(there) < len(sent)):
                raise Violation(
                    ONCE, f"{place}: {name} sent {sent[-5:]}, in all {len(sent)}; {there[-5:]} is read, in all {len(there)}"
                )


def _check_readers(world: World, place: Place, committed: PartitionReader) -> None:
    """What was read on the way is what is read in the end."""
    for client in world.clients:
        if isinstance(client, Reader) and client.name == "reader":
            early = client.partitions[place].records
            if early != committed.records[: len(early)]:
                differing = [pair for pair in zip(early, committed.records, strict=False) if pair[0] != pair[1]][:1]
                raise Violation(READ, f"{place}: {client.name} had read {differing or early[-1:]}")


def _check_transactions(world: World, committed: dict[Place, PartitionReader]) -> None:
    read = {place: {value for _, value in reader.records} for place, reader in committed.items()}
    for transaction in world.ledger.transactions:
        there = {value in read[place] for place, values in transaction.values.items() for value in values}
        if len(there) > 1:
            raise Violation(ATOMIC, f"{_told(transaction)}: {_parts(transaction, read)}")
        if there and transaction.fate in ("committed", "aborted") and there != {transaction.fate == "committed"}:
            raise Violation(ATOMIC, f"{_told(transaction)}: {_parts(transaction, read)}")


def _parts(transaction: Transaction, read: dict[Place, set[bytes]]) -> dict[Place, list[bool]]:
    return {place: [value in read[place] for value in values] for place, values in transaction.values.items()}


def _told(transaction: Transaction) -> str:
    return f"transaction {transaction.number} of {transaction.name}, {transaction.fate}"


def _check_offsets(world: World) -> None:
    """The last commit of each group is found, by a client that asks whoever coordinates."""
    asker = Committer(world, "asker", "")
    ledger = world.ledger

    async def ask() -> None:
        for (group, index), known in list(ledger.offsets.items()):
            ledger.check_offset(group, index, await asker.committed(group), known.acknowledged)
        for group in sorted({f"of-{transaction.name.partition('#')[0]}" for transaction in ledger.transactions}):
            found = await asker.committed(group)
            mine = [
                each for each in ledger.transactions if f"of-{each.name.partition('#')[0]}" == group and each.offset is not None
            ]
            _check_transactional(group, found, mine)

    _do(world, asker, ask())


def _check_transactional(group: str, found: int, transactions: list[Transaction]) -> None:
    """The offset of the last transaction that is committed, or of one whose fate is unknown."""
    by_offset = {each.offset: each for each in transactions}
    last = max((each.number for each in transactions if each.fate == "committed"), default=-1)
    if found == last:
        return
    of = by_offset.get(found)
    if of is None or of.fate in ("aborted", "committed") or found < last:
        raise Violation(COMMITTED, f"{group}: {found} is found, transaction {last} is committed, that is {of}")
