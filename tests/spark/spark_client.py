"""Spark as a client of one broker: batches and streams read from it and written to it, and tables that streams fill."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import StreamingQuery

from tests.spark.kafka import Record

HEADER_TYPE = "array<struct<key: string, value: binary>>"
SINK_TYPE = f"topic string, partition int, key binary, value binary, headers {HEADER_TYPE}"
TABLE_TYPE = "topic string, partition int, offset bigint, key binary, value binary, timestamp_ms bigint"
END_TIMEOUT_S = 60


class SparkClient:
    """Reads and writes with the options given, as Spark's documentation names them."""

    def __init__(self, session: SparkSession, bootstrap_servers: str) -> None:
        self.session = session
        self._bootstrap = {"kafka.bootstrap.servers": bootstrap_servers}
        # A consumer that Spark uses again first waits for the fetch that the last reader left behind at the log's end.
        self._source = {**self._bootstrap, "kafka.fetch.max.wait.ms": 50}

    def batch(self, **options: object) -> DataFrame:
        return self.session.read.format("kafka").options(**self._source, **options).load()

    def stream(self, **options: object) -> DataFrame:
        """A stream from the start, unless the options say otherwise."""
        settings = {**self._source, "startingOffsets": "earliest", **options}
        return self.session.readStream.format("kafka").options(**settings).load()

    def write(self, frame: DataFrame, **options: object) -> None:
        frame.write.format("kafka").options(**self._bootstrap, **options).save()

    def copy(self, frame: DataFrame, checkpoint: Path, topic: str, **trigger: object) -> StreamingQuery:
        """Start a stream into a topic."""
        writer = frame.writeStream.format("kafka").options(**self._bootstrap, topic=topic, checkpointLocation=str(checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def to_send(self, *records: Record, topic: str | None = None) -> DataFrame:
        """Records as the sink takes them: each to its partition, and with a topic column."""
        rows = [(topic, record.partition, record.key, record.value, list(record.headers) or None) for record in records]
        return self.session.createDataFrame(rows, SINK_TYPE)


@dataclass(frozen=True, slots=True)
class Table:
    """Files that streams append to, a batch whole or not at all, and the checkpoint of the stream that does."""

    session: SparkSession
    directory: Path

    def fill(self, frame: DataFrame, **trigger: object) -> StreamingQuery:
        """Start the stream, or resume it from where the checkpoint says."""
        writer = flat(frame).writeStream.format("parquet").option("path", str(self.directory / "rows"))
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def fill_to_the_end(self, frame: DataFrame) -> StreamingQuery:
        """Fill it with all there is now; the query, which has ended."""
        query = self.fill(frame, availableNow=True)
        assert query.awaitTermination(END_TIMEOUT_S), query.status
        return query

    def records(self) -> list[Record]:
        return in_order(self.session.read.schema(TABLE_TYPE).parquet(str(self.directory / "rows")).collect())


def flat(frame: DataFrame) -> DataFrame:
    """A source's frame with the time in milliseconds; with headers where it has them."""
    columns = ["topic", "partition", "offset", "key", "value", *(["headers"] if "headers" in frame.columns else [])]
    return frame.select(*columns, expr("unix_millis(timestamp) AS timestamp_ms"))


def read(frame: DataFrame) -> list[Record]:
    """What a batch of the source holds, by topic, partition and offset."""
    return in_order(flat(frame).collect())


def in_order(rows: Sequence[Row]) -> list[Record]:
    return [_record(row) for row in sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))]


def offsets(records: Iterable[Record], partition: int = 0) -> list[int]:
    return [record.offset for record in records if record.partition == partition]


def _record(row: Row) -> Record:
    headers = (row.headers or ()) if "headers" in row else ()
    return Record(
        value=_bytes(row.value),
        key=_bytes(row.key),
        partition=row.partition,
        timestamp_ms=row.timestamp_ms,
        headers=tuple((header.key, _bytes(header.value)) for header in headers),
        offset=row.offset,
    )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
