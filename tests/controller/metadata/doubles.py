"""A metadata log in memory, a publisher that remembers, and a controller on them."""

from random import Random
from uuid import UUID

from odradek.broker.start.storage_start import registered_features
from odradek.common.config import load
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.metadata_log import MetadataBatch
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_records import decode, encode
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord
from odradek.timing.clock import VirtualClock

NODE_ID = 1
DIRECTORY_ID = UUID(int=199)
# As a broker registers that has a controller for itself.
ALONE = RegisterBrokerRecord(broker_id=NODE_ID, features=registered_features(), fenced=False, log_dirs=(DIRECTORY_ID,))


class RecordedLog:
    """Stands in for MetadataLog: keeps encoded batches, and fails its next append with ``failure`` if that is set."""

    def __init__(self, batches=()):
        self.batches = [list(batch) for batch in batches]
        self.failure = None
        self.closed = False
        self.bootstrap = ()
        self.kraft_version = 0
        self.has_failed = False

    @property
    def end_offset(self):
        return sum(len(batch) for batch in self.batches)

    @property
    def last_records(self):
        return [decode(value) for value in self.batches[-1]]

    def read_snapshot(self):
        return iter(())

    def path_at(self, offset):
        return "recorded.log"

    def read_all(self):
        offset = 0
        for batch in self.batches:
            yield MetadataBatch(offset, [decode(value) for value in batch])
            offset += len(batch)

    def append(self, records, *, now_ms):
        if self.failure is not None:
            raise self.failure
        self.batches.append([encode(record) for record in records])
        return 0

    def append_voters(self, *, now_ms):
        if self.failure is not None:
            raise self.failure
        self.kraft_version = 1
        return 0

    def close(self, *, now_ms):
        self.closed = True


class Witness:
    """A publisher that keeps what it was told."""

    def __init__(self):
        self.created = []
        self.changed = []
        self.deleted = []
        self.altered = []
        self.deltas = []

    def publish(self, delta, image):
        self.deltas.append(delta)
        self.created += [(topic.name, [each.partition_id for each in created]) for topic, created in delta.new_partitions]
        self.changed += [(topic.name, [each.partition_id for each in changed]) for topic, changed in delta.changed_partitions]
        self.deleted += [topic.name for topic in delta.deleted_topics]
        self.altered += delta.configs


def make_controller(log, config=None, topic_ids=None):
    """A controller over ``log``; topic ids count up from 1000, or are taken from ``topic_ids``."""
    ids = topic_ids or iter(range(1000 + log.end_offset, 10**9))
    return LoneController(
        log,
        ControllerHost(config or load(), VirtualClock(), lambda: UUID(int=next(ids)), Random(0)),
        broker=ALONE,
        directory_counts=lambda: {DIRECTORY_ID: 0},
    )


def done(reply):
    """What a reply that is done has answered. Raises the KafkaError that it was failed with."""
    assert reply.done
    if isinstance(reply.response, KafkaError):
        raise reply.response
    return reply.response
