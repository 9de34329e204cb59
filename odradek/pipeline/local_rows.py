"""A DataFrame of few rows, or none, held by Spark itself.

From a list Spark would make an RDD of Python's, and start a Python worker for each reading, which takes a quarter of a second.
The rows of an Arrow table become part of the plan, and Spark prunes the plan if there are none.
"""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def local_rows(spark: SparkSession, schema: StructType | str, rows: Sequence[tuple[Any, ...]] = ()) -> DataFrame:
    """These rows, as ``schema``. Raises pyarrow.ArrowInvalid for a value that does not fit its column."""
    struct = cast("StructType", StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    fields = to_arrow_schema(struct)
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    frame: DataFrame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), struct)
    return frame
