"""See the package. Options: ``--kills``, ``--records``, ``--seed``."""

import argparse
import gc
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from odradek.pipeline.session import spark_session
from tests.broker_process import BrokerProcess
from tests.campaigns.pipeline_kills.runs import SETTINGS, JobProcess, count_rows, load, rows_that_differ

_BATCH_RECORDS = 10_000
_BROKERS_SHARE = 0.3


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.pipeline_kills", description=__doc__)
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
        undisturbed = f"{scratch}/undisturbed"
        with JobProcess(broker.address, undisturbed, chosen.records) as job:
            took_s = job.wait()
        disturbed = [f"{scratch}/disturbed-0"]
        kills, broker_kills = 0, 0
        while kills < chosen.kills:
            with JobProcess(broker.address, disturbed[-1], _BATCH_RECORDS) as job:
                is_through = job.wait(chance.uniform(0, took_s)) is not None
                if not is_through and chance.random() < _BROKERS_SHARE:
                    broker.kill9()
                    broker.start()
                    broker_kills += 1
                    is_through = job.wait(chance.uniform(0, took_s / 2)) is not None
                if is_through:
                    # Before its time had come: this warehouse is done, and the next is begun.
                    disturbed.append(f"{scratch}/disturbed-{len(disturbed)}")
                else:
                    job.kill9()
                    kills += 1
        with JobProcess(broker.address, disturbed[-1], _BATCH_RECORDS) as job:
            job.wait()
        spark = spark_session("local[1]", config={"spark.driver.memory": "1g"}, verbose=False)
        counts = count_rows(spark, undisturbed, broker.address)
        differ = sum((rows_that_differ(spark, undisturbed, warehouse, broker.address) for warehouse in disturbed), Counter())
        spark.stop()
    print(f"{kills} kills of the job, {broker_kills} of the broker under it, {len(disturbed)} warehouses", end="; ")
    print(f"rows compared in each: {counts}; differences {differ.total()}")
    print("".join(f"  {name}: {count}\n" for name, count in differ.items()), end="")
    return int(differ.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
