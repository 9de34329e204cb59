"""The observer's image is that of Apache Kafka's controller, after a change of each kind that clients and brokers ask for."""

import asyncio

import pytest
import pytest_asyncio

from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
from odradek.controller.metadata.snapshot_generator import records_of
from odradek.protocol.metadata_records import decode, record_types
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.storage.filesystem import RealFileSystem
from tests.controller.quorum.controller_changes import make_all
from tests.controller.quorum.real_quorum import quorum_of_kafka

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
SETTINGS = {
    "broker.session.timeout.ms": "600000",
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "metadata.max.idle.interval.ms": "100",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "min.insync.replicas": "2",
}
# Delegation tokens are made for clients that have authenticated. Brokers are fenced by BrokerRegistrationChangeRecords, and
# Kafka 4 has nothing to migrate. A controller aborts what another one began before it died.
NEVER_WRITTEN = {
    *("DelegationTokenRecord", "RemoveDelegationTokenRecord", "FenceBrokerRecord", "UnfenceBrokerRecord"),
    *("ZkMigrationStateRecord", "AbortTransactionRecord"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def quorum(tmp_path_factory):
    async with quorum_of_kafka(tmp_path_factory.mktemp("controllers"), 1, SETTINGS) as made:
        yield made


def snapshot_of_kafka(directory, name):
    """The records of a snapshot that the controller has written."""
    files = SnapshotFiles(RealFileSystem(), str(directory))
    offset, _, epoch = name.removesuffix(".checkpoint").partition("-")
    return [
        decode(record.value)
        for is_control, records in files.read(SnapshotId(int(offset), int(epoch)))
        for record in records
        if not is_control
    ]


def as_text(records):
    """In an order of their own; Kafka keeps a node's features in a map."""
    return sorted(
        repr(record._replace(features=tuple(sorted(record.features, key=repr))) if hasattr(record, "features") else record)
        for record in records
    )


async def test_kafkas_own_snapshot_has_the_records_of_the_image(quorum, new_name, tmp_path):
    directory = quorum.controllers.log_dir(1)
    async with quorum.observing(tmp_path) as observed:
        await make_all(quorum, new_name)
        offset = await quorum.committed_offset()
        name = ""
        while int(name[:20] or 0) < offset:
            await asyncio.sleep(0.05)
            name = max((file.name for file in directory.glob("*.checkpoint")), default="")
        await observed.has_applied(int(name[:20]))
        # What has come since are NoOpRecords.
        assert as_text(records_of(observed.image)) == as_text(snapshot_of_kafka(directory, name))
    data = b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
    written = {
        type(decode(record.value)).__name__
        for position, header in iter_batches(data)
        if not header.is_control
        for record in read_records(data, position)
    }
    assert written == {each.__name__ for each in record_types()} - NEVER_WRITTEN
