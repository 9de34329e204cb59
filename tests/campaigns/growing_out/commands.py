"""The commands of docs/growing-out.md, as the campaign runs them. ``kafka-*.sh`` are run as their classes, each in a JVM."""

import re
import shlex
import sys

from benchmarks import kafka_jars
from tests.campaigns.kafka_tools.kafka_controllers import JVM_FLAGS

SERVE_WITH_FLAGS = "odradek serve --data-dir {data} --port {port}"
SERVE = "odradek serve --config {file}"
GROW_OUT_WITH_FLAGS = "odradek grow-out --data-dir {data} --port {port} --out {out}"
GROW_OUT = "odradek grow-out --config {file} --out {out}"
START = "kafka-server-start.sh {file}"
CLUSTER_ID = "kafka-cluster.sh cluster-id --bootstrap-server {servers}"
UNREGISTER = "kafka-cluster.sh unregister --bootstrap-server {servers} --id {broker}"
FORMAT = "kafka-storage.sh format --cluster-id {cluster} --config {file}"
FORMAT_STANDALONE = "kafka-storage.sh format --standalone --cluster-id {cluster} --config {file}"
_REASSIGN = "kafka-reassign-partitions.sh --bootstrap-server {servers}"
GENERATE = f"{_REASSIGN} --topics-to-move-json-file {{topics}} --broker-list {{brokers}} --generate"
EXECUTE = f"{_REASSIGN} --reassignment-json-file {{plan}} --execute"
VERIFY = f"{_REASSIGN} --reassignment-json-file {{plan}} --verify"
ALL = (SERVE_WITH_FLAGS, SERVE, GROW_OUT_WITH_FLAGS, GROW_OUT, START, CLUSTER_ID, UNREGISTER, FORMAT, GENERATE, EXECUTE, VERIFY)

_CLASSES = {
    "kafka-server-start.sh": "kafka.Kafka",
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-cluster.sh": "org.apache.kafka.tools.ClusterTool",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}


def words(command: str, **values: object) -> list[str]:
    """The words of one of the commands, to be run."""
    program, *arguments = [word.format(**values) for word in shlex.split(command)]
    if program == "odradek":
        return [sys.executable, "-m", "odradek", *arguments]
    # Half of a controller's heap is the cleaner's.
    return [kafka_jars.java(), *JVM_FLAGS, "-Xmx512m", "-cp", f"{kafka_jars.libraries()}/*", _CLASSES[program], *arguments]


def is_one(line: str) -> bool:
    """Whether a line that somebody is to type is one of the commands."""
    return any(re.fullmatch(re.sub(r"\\\{\w+\\\}", r"\\S+", re.escape(command)), line) for command in ALL)
