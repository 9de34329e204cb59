"""Few rows, or none, as a DataFrame that Spark itself has.

From a list Spark makes an RDD of Python's, and starts a Python worker for each reading of it, a quarter of a second. Out of an
Arrow table it takes them into the plan; where there are none, what depends on them is left out before anything runs.
"""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def local_rows(spark: SparkSession, schema: StructType | str, rows: Sequence[tuple[Any, ...]] = ()) -> DataFrame:
    """These rows, as ``schema``. Raises pyarrow.ArrowInvalid for what a column does not hold."""
    struct = cast("StructType", StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    fields = to_arrow_schema(struct)
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    frame: DataFrame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), struct)
    return frame
