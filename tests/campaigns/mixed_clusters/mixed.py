"""One run: two brokers of each engine under a load, while leaders die, logs diverge, and partitions move to and fro.

At the end everything is in sync, what was promised is read, and all brokers stop in good order. Then their data directories are
compared (``comparison``), Kafka's DumpLogSegments reads all files, and faults are planted, which must be found.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource

from tests.campaigns.cluster_chaos.clients import read_all
from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.mixed_clusters.cluster import MixedCluster
from tests.campaigns.mixed_clusters.comparison import FAULTS, Replica, planted, replicas_in
from tests.campaigns.mixed_clusters.load import (
    IDEMPOTENT,
    PARTITIONS,
    PLAIN,
    TRANSACTED,
    UNCERTAIN,
    Writer,
    violations,
    writers,
)

KAFKA, ODRADEK = (5, 6), (11, 12)
NODES = (*KAFKA, *ODRADEK)
SAFE = (PLAIN, IDEMPOTENT, TRANSACTED)
THROTTLE_BYTES_PER_S = "200000"
_FILES_AT_ONCE = 150
# Two of three replicas are to have what is acknowledged, so none of it may be lost while one broker is away.
_CONTROLLER = {"broker.session.timeout.ms": "3000", "min.insync.replicas": "2"}


class Mixed:
    """The run. ``report`` are the lines to print; ``differences`` all that should not be."""

    def __init__(self, scratch: Path, seed: int, *, is_kafkas_controller: bool, a_second: float = 100) -> None:
        self._random = random.Random(seed)
        self._a_second = a_second
        settings = {"min.insync.replicas": "2", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
        self.cluster = MixedCluster(
            scratch,
            kafka=KAFKA,
            odradek=ODRADEK,
            is_kafkas_controller=is_kafkas_controller,
            settings=settings,
            controller_settings=_CONTROLLER,
        )
        self._writers: list[Writer] = []
        self._done: Counter[str] = Counter()
        self.differences: list[str] = []
        self.report: list[str] = []

    def close(self) -> None:
        """End all processes."""
        self.cluster.close()

    def run(self, seconds: float) -> None:
        """All of it."""
        self._begin()
        end = time.monotonic() + seconds
        while True:
            for harm in self._random.sample(HARMS, len(HARMS)):
                self._pause(0.5, 2)
                harm(self)
                self._done[harm.__name__.strip("_")] += 1
                self._until(self._are_in_sync)
                if time.monotonic() > end:
                    break
            else:
                continue
            break
        self.finish()

    def _begin(self) -> None:
        cluster = self.cluster
        cluster.begin()
        for topic in SAFE:
            # Each engine leads, followed by both.
            chosen = [[*self._random.sample(KAFKA, 2), *ODRADEK], [*self._random.sample(ODRADEK, 2), *KAFKA], [*NODES]]
            cluster.create(topic, [replicas[:3] for replicas in chosen])
        cluster.create(UNCERTAIN, [[5, 11], [12, 6], [11, 12]], min_insync_replicas="1")
        self._writers = writers(cluster.servers, self._a_second)

    # ------------------------------------------------------------------------------------------------------------------ harms

    def _kill_a_leader(self) -> None:
        topic, partition = self._any_partition()
        victim = self._leader(topic, partition)
        self.cluster.kill9(victim)
        self._pause(0, 5)
        self.cluster.start(victim)

    def _stop_a_broker(self) -> None:
        node_id = self._random.choice(NODES)
        self.cluster.stop(node_id)
        self._pause(0, 2)
        self.cluster.start(node_id)

    def _reassign(self) -> None:
        topic, partition = self._any_partition()
        self._move(topic, partition)

    def _reassign_throttled(self) -> None:
        topic, partition = self._any_partition()
        sides = ("leader", "follower")
        replicas = {f"{side}_replication_throttled_replicas": "*" for side in sides}
        rates = {f"{side}_replication_throttled_rate": THROTTLE_BYTES_PER_S for side in sides}
        self.cluster.configure(ConfigResource.Type.TOPIC, topic, **replicas)
        for node_id in NODES:
            self.cluster.configure(ConfigResource.Type.BROKER, str(node_id), **rates)
        self._move(topic, partition)
        self.cluster.configure(ConfigResource.Type.TOPIC, topic, **dict.fromkeys(replicas))
        for node_id in NODES:
            self.cluster.configure(ConfigResource.Type.BROKER, str(node_id), **dict.fromkeys(rates))

    def _move(self, topic: str, partition: int) -> None:
        target = self._random.sample(NODES, 3)
        code = self.cluster.reassign(topic, target, partition, by=self._random.choice(ODRADEK))
        if code:
            raise AssertionError(f"{topic}-{partition} is not reassigned to {target}: error {code}")
        self._until(lambda: sorted(self._replicas(topic)[partition]) == sorted(target))

    def _prefer(self) -> None:
        asked = [TopicPartition(topic, index) for topic in SAFE for index in range(PARTITIONS)]
        self.cluster.admin.elect_leaders(ElectionType.PREFERRED, asked).result(60)

    def _diverge(self) -> None:
        """A leader writes alone and dies; the other replica, which lacks that, is elected, and writes something else."""
        cluster = self.cluster
        partition = self._random.randrange(PARTITIONS)
        ahead = self._leader(UNCERTAIN, partition)
        [behind] = [node_id for node_id in self._replicas(UNCERTAIN)[partition] if node_id != ahead]
        cluster.kill9(behind)
        self._until(lambda: cluster.in_sync(UNCERTAIN)[partition] == [ahead])
        self._pause(0.3, 1)
        cluster.kill9(ahead)
        self._until(lambda: cluster.leaders(UNCERTAIN)[partition] == -1)
        cluster.start(behind)
        self._until(lambda: cluster.elects_unclean(UNCERTAIN, behind, partition))
        self._pause(0.3, 1)
        cluster.start(ahead)

    # -------------------------------------------------------------------------------------------------------------------- end

    def finish(self) -> None:
        """Settle, read, stop, compare."""
        for writer in self._writers:
            writer.stop()
        self._until(self._are_in_sync)
        read = {topic: read_all(self.cluster.servers, topic, is_quiet=True) for topic in SAFE}
        self.differences += violations(self._writers, read)
        again = {topic: read_all(self.cluster.servers, topic, is_quiet=True) for topic in SAFE}
        self.differences += [f"{topic} is read otherwise when it is read again" for topic in SAFE if read[topic] != again[topic]]
        told = {writer.name: len(writer.acknowledged) for writer in self._writers}
        self.report += [f"done: {dict(self._done)}", f"acknowledged: {told}"]
        self.cluster.settle_and_stop()
        for node_id in ODRADEK:
            if "Traceback" in self.cluster.odradek.log(node_id):
                self.differences.append(f"broker {node_id} has had a fault: {self.cluster.odradek.log(node_id)[-3000:]}")
        found = self.cluster.compare()
        self.report.append(str(found))
        self.differences += found.differences
        self.report.append(self._dump())
        self.report.append(self._plant())

    def _all(self) -> list[Replica]:
        found = replicas_in({node_id: self.cluster.data(node_id) for node_id in NODES})
        return [replica for replicas in found.values() for replica in replicas]

    def _dump(self) -> str:
        files = [
            path
            for replica in self._all()
            for path in sorted(replica.directory.iterdir())
            if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"} and path.stat().st_size
        ]
        records = 0
        for start in range(0, len(files), _FILES_AT_ONCE):
            try:
                dumped = dump(files[start : start + _FILES_AT_ONCE], "--deep-iteration")
            except AssertionError as error:
                self.differences.append(f"DumpLogSegments complains: {str(error)[:2000]}")
            else:
                records += sum(len(each.records) for each in dumped.values())
        return f"DumpLogSegments: {len(files)} files, {records} records"

    def _plant(self) -> str:
        missed = []
        found = len(self.cluster.compare().differences)
        chosen = [replica for replica in self._all() if replica.producers and len(replica.batches) > 1]
        for name in FAULTS:
            with planted(name, self._random.choice(chosen)):
                if len(self.cluster.compare().differences) <= found:
                    missed.append(name)
        self.differences += [f"planted and not found: {name}" for name in missed]
        return f"planted faults: {len(FAULTS)}, found {len(FAULTS) - len(missed)}"

    # ------------------------------------------------------------------------------------------------------------------- state

    def _any_partition(self) -> tuple[str, int]:
        return self._random.choice(SAFE), self._random.randrange(PARTITIONS)

    def _leader(self, topic: str, partition: int) -> int:
        found: list[int] = []

        def is_found() -> bool:
            found[:] = self.cluster.leaders(topic)[partition : partition + 1]
            return found[0] >= 0

        self._until(is_found)
        return found[0]

    def _replicas(self, topic: str) -> list[list[int]]:
        partitions = self.cluster.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [list(partitions[index].replicas) for index in sorted(partitions)]

    def _are_in_sync(self) -> bool:
        return len(self.cluster.admin.list_topics(timeout=10).brokers) == len(NODES) and self.cluster.all_in_sync()

    def _pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self._random.uniform(least_s, most_s))

    def _until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            try:
                return condition()
            except KafkaException:
                # Whoever was asked is away.
                return False

        self.cluster.until(holds)


HARMS = (
    Mixed._kill_a_leader,
    Mixed._stop_a_broker,
    Mixed._reassign,
    Mixed._reassign_throttled,
    Mixed._prefer,
    Mixed._diverge,
)
