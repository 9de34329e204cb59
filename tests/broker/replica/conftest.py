import pytest

from tests.broker.replica.replication_bed import ReplicationBed
from tests.broker.replica.small_cluster import SmallCluster


@pytest.fixture
def bed():
    return ReplicationBed()


@pytest.fixture
async def cluster():
    made = SmallCluster()
    yield made
    await made.close()
