import pytest

from tests.broker.replica.small_cluster import SmallCluster


@pytest.fixture
async def cluster():
    made = SmallCluster()
    yield made
    await made.close()
