"""See the package. Options: ``--kills``, ``--records``, ``--seed``."""

import argparse
import gc
import random
import sys
import tempfile
from pathlib import Path

from odradek.pipeline.session import spark_session
from tests.broker_process import BrokerProcess
from tests.pipeline_kills.runs import SETTINGS, JobProcess, count_rows, load, rows_that_differ

_BATCH_RECORDS = 10_000


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    gc.enable()
    chance = random.Random(chosen.seed)
    with (
        tempfile.TemporaryDirectory(prefix="odradek-pipeline-kills-") as scratch,
        BrokerProcess(Path(scratch, "broker"), settings=SETTINGS) as broker,
    ):
        load(broker.address, chosen.records)
        undisturbed, disturbed = f"{scratch}/undisturbed", f"{scratch}/disturbed"
        with JobProcess(broker.address, undisturbed, chosen.records) as job:
            took_s = job.wait()
        kills, broker_kills, most_s = 0, 0, took_s
        while kills < chosen.kills:
            with JobProcess(broker.address, disturbed, _BATCH_RECORDS) as job:
                is_brokers = chance.random() < 0.3
                if job.wait(chance.uniform(0, most_s)) is not None:
                    # It was through before its time had come: that is it, but for what a new one finds left.
                    most_s *= 0.7
                    continue
                if is_brokers:
                    broker.kill9()
                    broker.start()
                    broker_kills += 1
                    job.wait(chance.uniform(0, most_s))
                job.kill9()
                kills += 1
        with JobProcess(broker.address, disturbed, _BATCH_RECORDS) as job:
            job.wait()
        spark = spark_session("local[1]", config={"spark.driver.memory": "1g"}, verbose=False)
        counts = count_rows(spark, undisturbed)
        differ = rows_that_differ(spark, undisturbed, disturbed)
        spark.stop()
    print(f"{kills} kills of the job, {broker_kills} of the broker under it; rows compared: {counts}; differences {differ}")
    return int(any(differ.values()))


if __name__ == "__main__":
    sys.exit(main())
