"""``quorum-state``: what Kafka writes is read, and what is written is Kafka's."""

import pytest

from odradek.controller.quorum.leader_discovery import NO_LEADER, Election, ElectionFile
from tests.memory_filesystem import MemoryFileSystem

PATH = "/data/quorum-state"
# As Apache Kafka writes them; 4.3.1 wrote the first.
CONFIGURED_VOTERS = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
)
RECORDED_VOTERS = b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


@pytest.fixture
def file_system():
    made = MemoryFileSystem()
    made.make_dirs("/data")
    return made


@pytest.mark.parametrize("text", [CONFIGURED_VOTERS, RECORDED_VOTERS])
def test_what_kafka_wrote_is_read(file_system, text):
    file_system.write_atomic(PATH, text)
    file = ElectionFile(file_system, "/data")
    assert file.read() == Election(2, 1)
    assert file.version == (text is RECORDED_VOTERS)


@pytest.mark.parametrize(("version", "text"), [(0, CONFIGURED_VOTERS), (1, RECORDED_VOTERS)])
def test_what_is_written_is_kafkas(file_system, version, text):
    ElectionFile(file_system, "/data").write(Election(2, 1), (1, 3), version=version)
    assert file_system.read_bytes(PATH) == text


def test_a_node_that_has_seen_no_election_is_in_epoch_0(file_system):
    assert ElectionFile(file_system, "/data").read() == Election(0, NO_LEADER)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"leaderEpoch":2}', b'{"leaderEpoch":2,"data_version":2}', b'{"leaderId":1,"data']
)
def test_another_text_is_refused_with_its_path(file_system, text):
    file_system.write_atomic(PATH, text)
    with pytest.raises(ValueError, match=PATH):
        ElectionFile(file_system, "/data").read()
