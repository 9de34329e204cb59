"""``odradek produce``: writes records to a topic of any Kafka broker."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from odradek.cli.async_cluster import find_topic, with_cluster
from odradek.cli.options import Servers, reaches_a_broker, show_json
from odradek.cli.progress import Progress, is_terminal
from odradek.cli.record_format import unescaped
from odradek.cli.record_input import Headers, InvalidInput, RecordParser, RecordShape, read_chunks, read_lines
from odradek.client.api import ClientError
from odradek.client.cluster_client import ClusterClient
from odradek.client.producer import ALL_REPLICAS, PartitionedRecord, Producer, ProducerConfig
from odradek.protocol.compression import CODEC_NAMES

CODECS: Final = {name: number for number, name in enumerate(CODEC_NAMES)}
ACKS: Final = {"all": ALL_REPLICAS, "1": 1, "0": 0}
# The records of an argument that is repeated, sent together.
_REPEATED_AT_ONCE: Final = 5_000
_EXISTING_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
_TICKS_PER_S: Final = 10
_RECORDS_A_TRANSACTION: Final = 1_000


def parse_headers(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> Headers:
    """Parse ``name=value`` arguments; a name may come twice."""
    headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
        headers.append((name, value.encode()))
    return tuple(headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """The sources of records, and the limits on them."""

    values: Sequence[str]
    files: Sequence[Path]
    is_whole: bool
    count: int | None
    rate: float | None


@click.command()
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@reaches_a_broker
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Each line is a key, this text, and a value.")
@click.option("-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, callback=parse_headers, help="Repeatable.")
@click.option("-p", "--partition", type=click.IntRange(0), help="For all records.  [default: by the key, as Kafka's clients do]")
@click.option("--json-lines", is_flag=True, help="Each line is an object with key, value, headers, partition, timestamp.")
@click.option("-Z", "--empty-as-null", is_flag=True, help="An empty value is null: a tombstone.")
@click.option(
    "-f",
    "--file",
    "files",
    type=_EXISTING_FILE,
    multiple=True,
    help="Lines; repeatable.",
)
@click.option("--whole", is_flag=True, help="Each file, or all of stdin, is one record.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this many records; repeat the arguments until then.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="At most this many records a second.")
@click.option("-z", "--compression", type=click.Choice(list(CODECS)), default="none", show_default=True)
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True, help="The replicas to wait for.")
@click.option("--transactional-id", metavar="NAME", help="Write in transactions.")
@click.option(
    "--transaction-records",
    type=click.IntRange(1),
    default=_RECORDS_A_TRANSACTION,
    show_default=True,
    help="Records in a transaction.",
)
@click.option("--json", "as_json", is_flag=True, help="Tell as JSON what was written.")
def produce(topic: str, values: tuple[str, ...], bootstrap: Servers, as_json: bool, **options: Any) -> int:  # noqa: ANN401
    """Write records: the VALUEs, or lines of files, or lines of stdin.

    A topic that does not exist is created, if the broker does that. With acks=all, the default, no record is written twice.
    """
    shape = RecordShape(
        key=None if options["key"] is None else options["key"].encode(),
        key_separator=None if options["key_separator"] is None else unescaped(options["key_separator"]),
        headers=options["headers"],
        partition=options["partition"],
        is_json=options["json_lines"],
        empty_is_null=options["empty_as_null"],
    )
    config = ProducerConfig(
        acks=ACKS[options["acks"]],
        compression=CODECS[options["compression"]],
        transactional_id=options["transactional_id"],
    )
    if config.transactional_id is not None and config.acks != ALL_REPLICAS:
        raise click.UsageError("--transactional-id needs --acks all")
    if values and options["files"]:
        raise click.UsageError("give VALUEs or --file, not both")
    source = _Input(
        values=values, files=options["files"], is_whole=options["whole"], count=options["count"], rate=options["rate"]
    )
    batch = options["transaction_records"] if config.transactional_id is not None else None
    written = with_cluster(bootstrap, lambda cluster: _produce(cluster, topic, config, shape, source, batch))
    rows = [
        {
            "topic": topic,
            "partition": index,
            "records": one.count,
            "first_offset": one.first_offset,
            "last_offset": one.last_offset,
        }
        for index, one in sorted(written.items())
    ]
    if as_json:
        show_json(rows)
    elif is_terminal(sys.stderr):
        for row in rows:
            click.echo(f"{topic}-{row['partition']}: {row['records']} records, up to offset {row['last_offset']}", err=True)
    return 0


async def _produce(
    cluster: ClusterClient, topic: str, config: ProducerConfig, shape: RecordShape, source: _Input, batch: int | None
) -> dict[int, Any]:
    if await find_topic(cluster, topic, create=True):
        click.echo(f"odradek: there was no topic {topic}: the broker has created it", err=True)
    producer = Producer(cluster, topic, config)
    await producer.start()
    parser = RecordParser(shape, cluster.timer.clock.now_ms)
    progress = Progress(cluster.timer.clock, is_shown=not is_terminal(sys.stdin))
    records = _counted(progress, _limited(cluster, _records(parser, source), source))
    try:
        if batch is None:
            async for part in records:
                await producer.send(part)
            await producer.flush()
        else:
            await _in_transactions(producer, records, batch)
    except InvalidInput:
        # The records before it are written, as by any program that reads line by line; but not half a transaction.
        if batch is None:
            await producer.flush()
        else:
            await producer.end(committed=False)
        raise
    except BaseException:
        if batch is not None:
            with suppress(ClientError):
                await producer.end(committed=False)
        raise
    finally:
        progress.end()
    return producer.written


async def _counted(progress: Progress, parts: AsyncIterator[list[PartitionedRecord]]) -> AsyncIterator[list[PartitionedRecord]]:
    async for part in parts:
        yield part
        progress.add(len(part))


async def _in_transactions(producer: Producer, records: AsyncIterator[list[PartitionedRecord]], size: int) -> None:
    """Commit after each ``size`` records, and at the end."""
    room = size
    async for part in records:
        start = 0
        while start < len(part):
            those = part[start : start + room]
            await producer.send(those)
            start += len(those)
            room -= len(those)
            if not room:
                await producer.end(committed=True)
                room = size
    await producer.end(committed=True)


async def _records(parser: RecordParser, source: _Input) -> AsyncIterator[list[PartitionedRecord]]:
    if source.values:
        values = [value.encode(errors="surrogateescape") for value in source.values]
        repeated = iter(values) if source.count is None else islice(cycle(values), source.count)
        while those := list(islice(repeated, _REPEATED_AT_ONCE)):
            yield parser.parse(those)
        return
    if not source.files:
        if sys.stdin is None:
            raise click.UsageError("there is no stdin to read: give VALUEs or --file")
        if is_terminal(sys.stdin):
            click.echo("odradek: one record a line; Ctrl-D ends", err=True)
        async for lines in _inputs(sys.stdin.buffer, is_whole=source.is_whole):
            yield parser.parse(lines)
    for path in source.files:
        with path.open("rb") as file:
            async for lines in _inputs(file, is_whole=source.is_whole):
                yield parser.parse(lines)


async def _inputs(stream: BinaryIO, *, is_whole: bool) -> AsyncIterator[Sequence[bytes]]:
    if is_whole:
        yield [b"".join([chunk async for chunk in read_chunks(stream)])]
        return
    async for lines in read_lines(stream):
        yield lines


async def _limited(
    cluster: ClusterClient, parts: AsyncIterator[list[PartitionedRecord]], source: _Input
) -> AsyncIterator[list[PartitionedRecord]]:
    """Yield as many records as are wanted, no faster than the rate."""
    left = source.count
    started_ms, sent = cluster.timer.clock.monotonic_ms(), 0
    async for part in parts:
        wanted = part if left is None else part[:left]
        size = len(wanted) if source.rate is None else max(1, int(source.rate / _TICKS_PER_S))
        for start in range(0, len(wanted), size):
            those = wanted[start : start + size]
            if source.rate is not None:
                due_ms = started_ms + sent / source.rate * 1000
                await cluster.sleep(max(0.0, due_ms - cluster.timer.clock.monotonic_ms()))
            sent += len(those)
            yield those
        if left is not None:
            left -= len(wanted)
            if not left:
                return
