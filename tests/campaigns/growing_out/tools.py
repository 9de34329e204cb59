"""Apache Kafka's own tools: kafka-reassign-partitions.sh, kafka-cluster.sh, kafka-storage.sh."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.campaigns.growing_out import commands
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, until

_PROPOSED = "Proposed partition reassignment configuration\n"
_MOVE_TIMEOUT_S = 240.0


class KafkaTools:
    """``servers`` are the brokers to ask, ``scratch`` takes the files that the tools read."""

    def __init__(self, scratch: Path, servers: str) -> None:
        self._scratch = scratch
        self._servers = servers

    def reassign(self, topics: Sequence[str], brokers: Sequence[int]) -> int:
        """Have all partitions of these topics on these brokers and no others, and wait until it is done; how many there are."""
        topics_file, plan_file = self._scratch / "topics.json", self._scratch / "plan.json"
        topics_file.write_text(json.dumps({"version": 1, "topics": [{"topic": topic} for topic in topics]}), encoding="utf-8")
        generated = self._run(commands.GENERATE, topics=topics_file, brokers=",".join(map(str, brokers)))
        proposed = generated.partition(_PROPOSED)[2]
        plan_file.write_text(proposed, encoding="utf-8")
        self._run(commands.EXECUTE, plan=plan_file)
        until(lambda: self._is_done(plan_file), _MOVE_TIMEOUT_S)
        return len(json.loads(proposed)["partitions"])

    def unregister(self, broker: int) -> None:
        """Have the cluster forget a broker that was stopped."""
        told = self._run(commands.UNREGISTER, broker=broker)
        assert f"Broker {broker} is no longer registered" in told, told

    def cluster_id(self) -> str:
        """The cluster's."""
        return self._run(commands.CLUSTER_ID).strip().rpartition(" ")[2]

    def format(self, cluster_id: str, properties: Path) -> None:
        """Make the data directory of a broker that is to join."""
        self._run(commands.FORMAT, cluster=cluster_id, file=properties)

    def format_standalone(self, cluster_id: str, properties: Path) -> None:
        """Make the data directory of a node that is the first of its cluster, as the quickstart does."""
        self._run(commands.FORMAT_STANDALONE, cluster=cluster_id, file=properties)

    def _is_done(self, plan_file: Path) -> bool:
        told = self._run(commands.VERIFY, plan=plan_file)
        assert "failed" not in told, told
        return "is still in progress" not in told

    def _run(self, command: str, **values: object) -> str:
        words = commands.words(command, servers=self._servers, **values)
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, (command, values, done.stdout, done.stderr)
        return done.stdout
