"""``transactions`` and ``transactional_ids_now``, from which ``open_transactions`` is read.

A transaction begins with the first record after an Empty or Complete* record, a tombstone, or no record. The epochs tell who
ended it. A client before KIP-890 ends it in its own epoch; a newer client ends it in the next epoch; the coordinator fences the
producer and ends it in a later epoch than either. For newer clients the log does not distinguish an abort by the producer from
fencing by another instance; the outcome is then ``aborted``. A transaction that the coordinator ended, or may have ended, after
the timeout is ``timed_out``.
"""

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.schema import INT, LONG, TIME, TRANSACTION, struct
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.schema import RECORD_ORDER, TRANSACTIONAL_IDS_NOW, TRANSACTIONS

_KEY = "transactional_id"
_NEWER_CLIENT = 2
# The beginning of the transaction that a record belongs to: all null if unknown, or if no transaction has begun.
_BEGINNING = struct(at=TIME, producer_id=LONG, producer_epoch=INT, client_version=INT)
_PREPARED = struct(at=TIME, producer_epoch=INT)
STATE = struct(TRANSACTIONAL_IDS_NOW, _beginning=_BEGINNING, _prepared=_PREPARED)


def build_transactions(raw: DataFrame, before: DataFrame, writer: Writer) -> None:
    """Write both tables out of new ``RAW`` rows and the ``STATE`` before them."""
    rows = _records(raw, before).persist(StorageLevel.DISK_ONLY)
    try:
        over = rows.where("NOT _is_before AND status LIKE 'Complete%'")
        writer.table("transactions", _ended(over), _KEY, *RECORD_ORDER)
        now = rows.where("_is_newest AND status IS NOT NULL").select(*STATE.names)
        writer.state("transactional_ids_now", now, _KEY)
    finally:
        rows.unpersist()


def _records(raw: DataFrame, before: DataFrame) -> DataFrame:
    """Return old and new records with the beginning and the decision of their transactions, partitioned by id."""
    new = raw.where(f.col("kind") == TRANSACTION).select(
        _KEY,
        "producer_id",
        "producer_epoch",
        "timeout_ms",
        "status",
        "partitions",
        f.when(f.col("start_ms") >= 0, f.timestamp_millis("start_ms")).alias("start_at"),
        f.when(f.col("last_update_ms") >= 0, f.timestamp_millis("last_update_ms")).alias("last_update_at"),
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        "client_transaction_version",
        f.col("timestamp").alias("_at"),
        f.lit(False).alias("_is_before"),
    )
    rows = by_key(new.unionByName(before.withColumn("_is_before", f.lit(True)), allowMissingColumns=True), _KEY)
    in_order = Window.partitionBy(_KEY).orderBy(*RECORD_ORDER)
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = rows.withColumns(
        {
            "_previous_status": f.coalesce(f.lag("status").over(in_order), f.lit("")),
            "_previous_partitions": f.lag("partitions").over(in_order),
            "_is_newest": f.lead("record_offset").over(in_order).isNull(),
        }
    )
    begins = ~f.col("_is_before") & ~f.col("_previous_status").isin("Ongoing", "PrepareCommit", "PrepareAbort")
    rows = rows.withColumn("_begins", begins)
    return rows.withColumns(
        {
            "_beginning": f.last(_beginning(), ignorenulls=True).over(until_now),
            "_prepared": f.last(_prepared(), ignorenulls=True).over(until_now),
        }
    )


def _beginning() -> Column:
    """Return the beginning of a transaction, from its first record; all null if that record is not Ongoing."""
    version = f.col("client_transaction_version").alias("client_version")
    known = f.struct(f.col("_at").alias("at"), "producer_id", "producer_epoch", version).cast(_BEGINNING)
    unknown = f.struct(*[f.lit(None).cast(field.dataType).alias(field.name) for field in _BEGINNING.fields])
    new = f.when(f.col("status") == "Ongoing", known).otherwise(unknown)
    return f.when(f.col("_is_before"), f.col("_beginning")).when(f.col("_begins"), new)


def _prepared() -> Column:
    """Return the decision of a transaction, from its prepare record; all null from the transaction's beginning until then."""
    known = f.struct(f.col("_at").alias("at"), "producer_epoch").cast(_PREPARED)
    unknown = f.struct(*[f.lit(None).cast(field.dataType).alias(field.name) for field in _PREPARED.fields])
    decides = f.col("status").isin("PrepareCommit", "PrepareAbort")
    return f.when(f.col("_is_before"), f.col("_prepared")).when(decides, known).when(f.col("_begins"), unknown)


def _ended(over: DataFrame) -> DataFrame:
    """Return ``TRANSACTIONS``, out of the completing records."""
    partitions = f.when(f.col("_begins"), f.col("partitions")).otherwise(f.col("_previous_partitions"))
    rows = over.withColumns(
        {
            "start_at": f.coalesce("start_at", "_beginning.at"),
            "ongoing_at": f.col("_beginning.at"),
            "prepared_at": f.col("_prepared.at"),
            "completed_at": f.col("_at"),
            "partitions": f.array_sort(f.coalesce(partitions, f.array().cast(TRANSACTIONS["partitions"].dataType))),
        }
    )
    rows = rows.withColumns(
        {
            "partition_count": f.size("partitions"),
            "ongoing_ms": _ms_between("start_at", "prepared_at"),
            "prepare_ms": _ms_between("prepared_at", "completed_at"),
            "total_ms": _ms_between("start_at", "completed_at"),
        }
    )
    rows = rows.withColumn("outcome", _outcome())
    rows = rows.withColumns(
        {
            "producer_id": f.coalesce("_beginning.producer_id", "producer_id"),
            "producer_epoch": f.coalesce("_beginning.producer_epoch", "producer_epoch"),
        }
    )
    return rows.select(*TRANSACTIONS.names)


def _outcome() -> Column:
    is_newer_client = f.coalesce(f.col("_beginning.client_version") >= _NEWER_CLIENT, f.lit(True))
    bumps = f.col("_prepared.producer_epoch") - f.col("_beginning.producer_epoch")
    by_coordinator = f.coalesce(bumps > f.when(is_newer_client, 1).otherwise(0), f.lit(False))
    is_late = f.coalesce(f.col("ongoing_ms") >= f.col("timeout_ms"), f.lit(False))
    return (
        f.when(f.col("status") == "CompleteCommit", "committed")
        .when(is_late & (by_coordinator | is_newer_client), "timed_out")
        .when(by_coordinator, "fenced")
        .otherwise("aborted")
    )


def _ms_between(start: str, end: str) -> Column:
    return f.unix_millis(end) - f.unix_millis(start)
