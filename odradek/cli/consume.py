"""``odradek consume``: reads the records of a topic from any Kafka broker."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import click

from odradek.cli.async_cluster import find_topic, with_cluster
from odradek.cli.cluster import Refused
from odradek.cli.consume_from import BEGINNING, Start, parse_start, start_offsets
from odradek.cli.options import Servers, reaches_a_broker
from odradek.cli.progress import Progress, is_terminal
from odradek.cli.record_format import InvalidFormat, Render, as_json, compiled_format, jq_filter, plain
from odradek.client.api import ClientError
from odradek.client.apis import LATEST_TIMESTAMP
from odradek.client.cluster_client import ClusterClient
from odradek.client.fetcher import READ_COMMITTED, Fetched, Fetcher
from odradek.client.group_consumer import NOTICE_MS, GroupConsumer
from odradek.client.group_member import GroupMember
from odradek.client.known_cluster import Partition
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.patterns import InvalidPattern, compile_search
from odradek.protocol.records import Record

Filter = Callable[[Record], bool]

_ISOLATIONS: Final = ("read_uncommitted", "read_committed")
_MOST_LETTERS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The records that are wanted."""

    topic: str
    partitions: tuple[int, ...]
    start: Start
    count: int | None
    exits_at_end: bool
    group: str | None
    is_committed: bool
    filters: list[Filter] = field(default_factory=list)


@click.command()
@click.argument("topic")
@reaches_a_broker
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    callback=parse_start,
    help="beginning, end, an offset, -N for the last N of each partition, a time (ISO 8601), or an age such as 15m.  "
    "[default: beginning; with --group, where the group is]",
)
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this many records.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Begin N records before the end of each partition.")
@click.option("-g", "--group", metavar="NAME", help="Join this group, and commit the offsets.")
@click.option("--follow/--exit-at-end", "follow", default=True, help="At the end, wait for more (the default), or stop.")
@click.option("-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Repeatable.  [default: all]")
@click.option("--format", "text", metavar="FORMAT", help=r"As kcat's: %t %p %o %T %d %k %v %h %K %S, \n and \t.")
@click.option("--json", "is_json", is_flag=True, help="A JSON object a line, which odradek produce --json-lines reads.")
@click.option("--hex", "is_hex", is_flag=True, help="Keys and values in hexadecimal.")
@click.option("--headers", "with_headers", is_flag=True, help="The headers and a tab before each value.")
@click.option("--key-filter", metavar="RE2", help="Only records in whose key this regular expression is found.")
@click.option("--value-filter", metavar="RE2", help="Only records in whose value this regular expression is found.")
@click.option("--jq", "program", metavar="PROGRAM", help="Write the results of this jq program on each value, which is JSON.")
@click.option("--isolation", type=click.Choice(_ISOLATIONS), default=_ISOLATIONS[0], show_default=True)
def consume(topic: str, bootstrap: Servers, **options: Any) -> int:  # noqa: ANN401
    """Read records, each partition in its order, and write their values to stdout, one a line.

    It goes on until Ctrl-C, unless --exit-at-end or --count is given.
    """
    if options["start"] is not None and options["tail"] is not None:
        raise click.UsageError("give --from or --tail, not both")
    if options["group"] is not None and options["partitions"]:
        raise click.UsageError("--partition and --group do not go together: a group deals the partitions among its members")
    start = options["start"] or BEGINNING
    if options["tail"] is not None:
        start = Start(offset=-options["tail"]) if options["tail"] else Start(timestamp_ms=LATEST_TIMESTAMP)
    wanted = _Wanted(
        topic=topic,
        partitions=options["partitions"],
        start=start,
        count=options["count"],
        exits_at_end=not options["follow"],
        group=options["group"],
        is_committed=options["isolation"] == "read_committed",
        filters=list(_filters(options["key_filter"], options["value_filter"])),
    )
    render = _render(
        options["text"],
        options["program"],
        is_json=options["is_json"],
        is_hex=options["is_hex"],
        with_headers=options["with_headers"],
    )
    with_cluster(bootstrap, lambda cluster: _Reading(cluster, wanted, render).run())
    return 0


def _filters(key_pattern: str | None, value_pattern: str | None) -> Iterable[Filter]:
    """Yield the filters. A null matches nothing."""
    for option, pattern, part in (("--key-filter", key_pattern, _key_of), ("--value-filter", value_pattern, _value_of)):
        if pattern is None:
            continue
        if len(pattern) > _MOST_LETTERS:
            raise click.UsageError(f"{option}: it has {len(pattern)} characters")
        try:
            search = compile_search(pattern)
        except InvalidPattern as error:
            raise click.UsageError(f"{option} {pattern}: not a regular expression of RE2: {error}") from error
        yield lambda record, search=search, part=part: (  # type: ignore[misc]
            (data := part(record)) is not None and search(data) is not None
        )


def _key_of(record: Record) -> bytes | None:
    return record.key


def _value_of(record: Record) -> bytes | None:
    return record.value


def _render(text: str | None, program: str | None, *, is_json: bool, is_hex: bool, with_headers: bool) -> Render:
    """Return the function that writes a record. Raises click.UsageError."""
    if sum((text is not None, program is not None, is_json)) > 1:
        raise click.UsageError("give one of --format, --json, --jq")
    if is_json:
        return as_json
    if program is not None:
        return jq_filter(program)
    if text is None and not is_hex and not with_headers:
        return plain
    try:
        return compiled_format(text if text is not None else r"%h\t%v\n" if with_headers else r"%v\n", as_hex=is_hex)
    except InvalidFormat as error:
        raise click.UsageError(f"--format: {error}") from error


class _Reading:
    """The run of the command: partitions, ends, and the count."""

    def __init__(self, cluster: ClusterClient, wanted: _Wanted, render: Render) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._render = render
        self._fetcher = Fetcher(cluster, READ_COMMITTED if wanted.is_committed else 0)
        self._consumer: GroupConsumer | None = None
        self._left = wanted.count
        self._progress = Progress(cluster.timer.clock, is_shown=not is_terminal(sys.stdout))
        # The ends where the command stops; None if it follows.
        self._ends: dict[Partition, int] | None = None

    async def run(self) -> None:
        """Read until the end, the count, or Ctrl-C. Raises ClientError, Refused."""
        await find_topic(self._cluster, self._wanted.topic)
        if self._wanted.group is not None:
            member = GroupMember(self._cluster, self._wanted.group, [self._wanted.topic])
            self._consumer = GroupConsumer(self._cluster, self._fetcher, member, self._start)
        else:
            self._fetcher.assign(await self._start(self._chosen()))
            await self._find_ends()
        try:
            await self._read_all()
        finally:
            self._progress.end()
            self._fetcher.close()
            if self._consumer is not None:
                with suppress(ClientError):
                    await self._consumer.close()

    def _chosen(self) -> list[Partition]:
        known = self._cluster.leaders(self._wanted.topic)
        for index in self._wanted.partitions:
            if index not in known:
                words = f"the topic has {len(known)} partitions, the first is 0"
                raise Refused(f"{self._wanted.topic}-{index}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
        return [(self._wanted.topic, index) for index in self._wanted.partitions or sorted(known)]

    async def _start(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return await start_offsets(self._cluster, partitions, self._wanted.start, is_committed=self._wanted.is_committed)

    async def _find_ends(self) -> None:
        """Find the present ends of the partitions, and drop the partitions that have no records to read."""
        if not self._wanted.exits_at_end:
            return
        positions = dict(self._fetcher.positions)
        latest = dict.fromkeys(positions, LATEST_TIMESTAMP)
        ends = await self._cluster.list_offsets(latest, is_committed=self._wanted.is_committed) if positions else {}
        self._ends = {partition: end for partition, end in ends.items() if positions[partition] < end}
        for partition in positions.keys() - self._ends.keys():
            self._fetcher.drop(partition)

    async def _read_all(self) -> None:
        while True:
            if self._consumer is not None and await self._consumer.keep_up():
                await self._find_ends()
            if self._ends is not None and not self._ends:
                return
            fetched = await self._fetcher.next(None if self._consumer is None else NOTICE_MS)
            if fetched is None:
                continue
            next_offset = self._write(fetched)
            if self._consumer is not None:
                self._consumer.done[fetched.partition] = next_offset
            if self._left == 0:
                return
            if self._ends is not None and next_offset >= self._ends.get(fetched.partition, next_offset + 1):
                del self._ends[fetched.partition]
                self._fetcher.drop(fetched.partition)

    def _write(self, fetched: Fetched) -> int:
        """Write records, and return the offset after the last one. Raises Refused for records that cannot be read."""
        partition, end = fetched.partition, None if self._ends is None else self._ends.get(fetched.partition)
        output: list[bytes] = []
        next_offset = fetched.next_offset
        try:
            for record in fetched.records():
                if end is not None and record.offset >= end:
                    break
                if not all(matches(record) for matches in self._wanted.filters):
                    continue
                line = self._render(partition, record)
                if not line:
                    continue
                output.append(line)
                if self._left is not None:
                    self._left -= 1
                    if not self._left:
                        next_offset = record.offset + 1
                        break
        except MalformedMessage as error:
            subject = f"{partition[0]}-{partition[1]} from offset {fetched.offset}"
            raise Refused(subject, ErrorCode.CORRUPT_MESSAGE, error.reason) from error
        finally:
            if output:
                sys.stdout.buffer.write(b"".join(output))
                sys.stdout.buffer.flush()
                self._progress.add(len(output))
        return next_offset
