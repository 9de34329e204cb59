"""Spark's source and sink by each mechanism: ``python -m tests.campaigns.sasl_differential.spark_client CASES``.

A process of its own, with one session for all cases, which are told as JSON, as is what became of them.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.session import start_session

_ROWS: Final = 3
_ERRORS: Final = "org.apache.kafka.common.errors."


def main(arguments: Sequence[str]) -> None:
    """Print what became of each case."""
    cases = json.loads(arguments[0])
    with tempfile.TemporaryDirectory() as directory:
        session = start_session(Path(directory) / "warehouse")
        session.sparkContext.setLogLevel("OFF")
        print(json.dumps({name: _outcome(session, name, options) for name, options in cases.items()}))
        session.stop()


def _outcome(session: SparkSession, name: str, options: dict[str, str]) -> str:
    topic = "spark-" + "".join(letter for letter in name if letter.isalnum())
    told = []
    for what in (_written, _read):
        try:
            told.append(what(session, topic, options))
        except (PySparkException, Py4JJavaError) as error:
            told.append(_error(str(error)))
    return ", ".join(told)


def _written(session: SparkSession, topic: str, options: dict[str, str]) -> str:
    rows = session.createDataFrame([(f"value {number}",) for number in range(_ROWS)], "value string")
    rows.write.format("kafka").options(**options, topic=topic).save()
    return "written"


def _read(session: SparkSession, topic: str, options: dict[str, str]) -> str:
    found = session.read.format("kafka").options(**options, subscribe=topic).load().count()
    return f"{found} read"


def _error(text: str) -> str:
    """The cause that Kafka's client gives."""
    line = next((line for line in text.splitlines() if _ERRORS in line), text)
    return line[line.find(_ERRORS) :].removeprefix(_ERRORS).strip() if _ERRORS in line else line[:300]


if __name__ == "__main__":
    main(sys.argv[1:])
