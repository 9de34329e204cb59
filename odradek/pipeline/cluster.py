"""The cluster as the driver sees it, through the Admin client of Spark's connector: id, topics, ends of partitions.

The size of each answer is bounded by the number of the cluster's partitions. Java's classes are reached as PySpark reaches
them.
"""

import re
import socket
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from odradek.pipeline.errors import PipelineError, Unreachable, root_cause

_TIMEOUT_MS = "15000"
_CONNECT_TIMEOUT_S = 5.0
_WHAT_TO_LOOK_AT = (
    "check that it is a Kafka broker with advertised.listeners that you can reach; for TLS or SASL give --command-config FILE"
)
_PORT = re.compile(r"^(.+):(\d{1,5})$")


def require_reachable(bootstrap_servers: str) -> None:
    """Raise Unreachable unless something listens at one of ``HOST:PORT,HOST:PORT``; checked before a JVM is started."""
    failures = []
    for address in bootstrap_servers.split(","):
        named = _PORT.match(address.strip())
        if named is None:
            raise PipelineError(f"{address!r} is not HOST:PORT: give --bootstrap-server the address of a broker")
        try:
            socket.create_connection((named[1].strip("[]"), int(named[2])), _CONNECT_TIMEOUT_S).close()
        except (OSError, OverflowError) as failure:
            failures.append(f"{address.strip()}: {getattr(failure, 'strerror', None) or failure}")
        else:
            return
    raise Unreachable(f"no broker answers at {'; '.join(failures)}. Start it, or correct --bootstrap-server")


def source_options(bootstrap_servers: str, kafka_config: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's options for a Kafka source or sink: the cluster's address and its clients' configs."""
    return {**{f"kafka.{key}": value for key, value in kafka_config.items()}, "kafka.bootstrap.servers": bootstrap_servers}


class Cluster:
    """A cluster, closed at the end of its ``with``.

    Every method raises PipelineError, and Unreachable if the cluster does not answer.
    """

    def __init__(self, spark: SparkSession, bootstrap_servers: str, config: Mapping[str, str]) -> None:
        self._bootstrap_servers = bootstrap_servers
        # PySpark itself reaches Java through this attribute.
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        self._jvm = jvm
        settings = self._jvm.java.util.HashMap()
        given = {"request.timeout.ms": _TIMEOUT_MS, "default.api.timeout.ms": _TIMEOUT_MS, **config}
        for key, value in {**given, "bootstrap.servers": bootstrap_servers}.items():
            settings.put(key, value)
        try:
            self._admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        except Py4JJavaError as failure:
            raise self._pipeline_error(failure) from failure

    def cluster_id(self) -> str:
        """Return the cluster id."""
        return str(self._wait(self._admin.describeCluster().clusterId()))

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the partitions with a leader, for those of ``topics`` that exist."""
        options = self._jvm.org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(True)
        existing = self._wait(self._admin.listTopics(options).names())
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            if existing.contains(topic):
                names.add(topic)
        described = self._wait(self._admin.describeTopics(names).allTopicNames())
        return {
            str(name): sorted(int(each.partition()) for each in described.get(name).partitions() if each.leader() is not None)
            for name in names
        }

    def topic_ids(self) -> list[tuple[str, str]]:
        """Return (topic, topic id) of every topic."""
        listings = self._wait(self._admin.listTopics().namesToListings())
        return [(str(name), str(listings.get(name).topicId().toString())) for name in listings.keySet()]

    def end_offsets(self, topics: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return (topic, partition, high watermark) of each partition of the topics. Partitions without a leader are omitted."""
        return self._offsets(topics, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())

    def begin_offsets(self, topics: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return (topic, partition, log start offset), for the same partitions as ``end_offsets``."""
        return self._offsets(topics, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest())

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> list[tuple[str, int, int]]:
        """Return (topic, partition, offset) of the first record at or after ``time_ms`` since the epoch; offset -1 for none."""
        return self._offsets(topics, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(time_ms))

    def _offsets(self, topics: Iterable[str], spec: Any) -> list[tuple[str, int, int]]:
        asked = self._jvm.java.util.HashMap()
        for name, partitions in self.partitions(topics).items():
            for partition in partitions:
                asked.put(self._jvm.org.apache.kafka.common.TopicPartition(name, partition), spec)
        if asked.isEmpty():
            return []
        found = self._wait(self._admin.listOffsets(asked).all())
        return [(str(each.topic()), int(each.partition()), int(found.get(each).offset())) for each in asked.keySet()]

    def _wait(self, future: Any) -> Any:
        try:
            return future.get()
        except Py4JJavaError as failure:
            raise self._pipeline_error(failure) from failure

    def _pipeline_error(self, failure: Py4JJavaError) -> PipelineError:
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        name = str(cause.getClass().getSimpleName())
        message = " ".join(str(cause.getMessage()).split()).rstrip(".")
        if name in {"TimeoutException", "DisconnectException", "BrokerNotAvailableException"}:
            reason = f"the cluster at {self._bootstrap_servers} did not answer ({message})"
            return Unreachable(f"{reason}: {_WHAT_TO_LOOK_AT}")
        return PipelineError(
            f"the cluster at {self._bootstrap_servers} refused the request: {message or root_cause(failure)} ({name})"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._admin.close()
