"""See the package. Options: ``--records``."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pyarrow.parquet as pq
import pyspark

from benchmarks.ports import free_ports
from odradek.pipeline.schema import END_OFFSETS_DIR, STATE_DIR, TABLES_DIR
from tests.broker_process import REPOSITORY, BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.pipeline_kills.runs import SETTINGS, JobProcess, load

_WORKERS = 2
_PART = re.compile(r"part-(\d+)-.*\.parquet$")
_BATCH_RECORDS = 100_000


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.pipeline_cluster", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odradek-pipeline-cluster-") as scratch,
        BrokerProcess(Path(scratch, "broker"), settings=SETTINGS) as broker,
    ):
        files, differ = compare(Path(scratch), broker, chosen.records)
    print(f"local[1] and a master with {_WORKERS} workers: {files} files of tables, differences {len(differ)}")
    print("".join(f"  {name}\n" for name in differ), end="")
    return int(bool(differ) or not files)


def compare(scratch: Path, broker: BrokerProcess, records: int) -> tuple[int, list[str]]:
    """The number of the tables' files, and the names of those that differ, of a history that is put into the broker."""
    load(broker.address, records)
    alone, together = scratch / "alone", scratch / "together"
    for jobs in ("ingest", "tables"):
        with JobProcess(broker.address, str(alone), _BATCH_RECORDS, jobs=jobs) as job:
            job.wait()
    with standalone_cluster(scratch / "cluster") as master:
        for jobs in ("ingest", "tables"):
            run_on(master, jobs, broker, scratch, together)
            shutil.rmtree(together / END_OFFSETS_DIR, ignore_errors=True)
            if (alone / END_OFFSETS_DIR).exists():
                shutil.copytree(alone / END_OFFSETS_DIR, together / END_OFFSETS_DIR)
    one, other = (digests(warehouse) for warehouse in (alone, together))
    return len(one), sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def run_on(master: str, jobs: str, broker: BrokerProcess, scratch: Path, warehouse: Path) -> None:
    """Run jobs on a cluster. The package goes to its workers as a zip, which is made in ``scratch``."""
    with JobProcess(broker.address, str(warehouse), _BATCH_RECORDS, master, jobs, _config(scratch)) as job:
        job.wait()


def _config(scratch: Path) -> dict[str, str]:
    package = Path(scratch, "odradek.zip")
    with ZipFile(package, "w") as archive:
        for path in sorted((REPOSITORY / "odradek").rglob("*.py")):
            archive.write(path, path.relative_to(REPOSITORY))
    return {
        "spark.submit.pyFiles": str(package),
        "spark.executor.memory": "700m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(_WORKERS),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The master's URL, until the end of the ``with``; its workers have a core each."""
    directory.mkdir()
    [port] = free_ports(1)
    url = f"spark://127.0.0.1:{port}"
    roles = {"master": ["org.apache.spark.deploy.master.Master", "--port", str(port)]}
    for number in range(_WORKERS):
        worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g"]
        roles[f"worker-{number}"] = [*worker, "--work-dir", str(directory / f"work-{number}"), url]
    processes = []
    try:
        for name, words in roles.items():
            log = directory / f"{name}.log"
            processes.append(_start(words, log))
            # The last line but one that each says, with Spark's own log settings.
            said = "I have been elected leader" if name == "master" else "Successfully registered with master"
            until(lambda log=log, said=said: said in log.read_text(errors="replace"))
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _start(words: list[str], log: Path) -> subprocess.Popen:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    command = [str(home / "bin" / "spark-class"), words[0], "--host", "127.0.0.1", "--webui-port", "0", *words[1:]]
    with log.open("w") as output:
        return subprocess.Popen(command, env=environment, cwd=log.parent, stdout=output, stderr=subprocess.STDOUT)


def digests(warehouse: Path) -> dict[str, str]:
    """Of each file of the tables and their state, by directory and number of the part: the rest of its name is by chance."""
    found = {}
    for room in (TABLES_DIR, STATE_DIR):
        for path in (warehouse / room).rglob("*.parquet"):
            part = _PART.search(path.name)
            assert part is not None, path
            name = f"{path.parent.relative_to(warehouse)}/{part[1]}"
            assert name not in found
            found[name] = _digest(path)
    return found


def _digest(path: Path) -> str:
    """Of all bytes before the footer, and of what that says: a column's encodings are listed as a JVM's hash table has them."""
    content = path.read_bytes()
    footer_bytes = int.from_bytes(content[-8:-4], "little")
    footer = pq.ParquetFile(path).metadata.to_dict()
    for group in footer["row_groups"]:
        for column in group["columns"]:
            column["encodings"] = sorted(column["encodings"])
    return hashlib.sha256(content[: -8 - footer_bytes] + repr(footer).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
