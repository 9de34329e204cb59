"""Finds the quorum's leader for an observer, and keeps the latest leader epoch in ``quorum-state``.

The discovery does no I/O. Each Fetch of an observer names the leader and epoch that it knows, and each response names those that
its sender knows. The larger epoch wins. If an observer knows no leader, or its leader is silent, it asks random nodes of the
quorum, one request at a time. A node that fails, or has no news, is left alone for ``retry_backoff_ms``.

Kafka's names are QuorumState, RequestManager and ``KafkaRaftClient.maybeHandleCommonResponse`` (KIP-595, KIP-853). Kafka asks a
node without news again at once. Here the backoff applies to it too, as the same thread serves clients.

``ElectionFile`` is ``quorum-state``, which Kafka keeps beside the metadata log: one line of JSON. A quorum of ``kraft.version``
0, whose voters are configured, uses the first form, others use the second. An observer never votes.

    {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
    {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.storage.filesystem import FileSystem

NO_LEADER: Final = -1
_STALE_EPOCH: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)

Address = tuple[str, int]


class QuorumNode(NamedTuple):
    """A configured node of the quorum. Those of ``controller.quorum.bootstrap.servers`` have no id."""

    node_id: int | None
    host: str
    port: int

    @property
    def address(self) -> Address:
        """Return host and port."""
        return self.host, self.port


class Leader(NamedTuple):
    """The active controller."""

    node_id: int
    host: str
    port: int
    epoch: int

    @property
    def address(self) -> Address:
        """Return host and port."""
        return self.host, self.port


class Election(NamedTuple):
    """The latest epoch and its leader, NO_LEADER if unknown."""

    epoch: int = 0
    leader_id: int = NO_LEADER


class QuorumAnswer(NamedTuple):
    """The part of a response about the quorum; ``endpoints`` has addresses by node id."""

    error: int
    election: Election
    endpoints: Mapping[int, Address]


class InconsistentLeader(Exception):
    """Two leaders were named for one epoch: the quorum is broken, and none of its answers can be trusted."""


class LeaderDiscovery:
    """One observer's knowledge of its quorum. ``now_ms`` is monotonic time.

    ``election`` is the last run's election. Its epoch is at least that of the log's last record.
    """

    def __init__(
        self,
        nodes: Sequence[QuorumNode],
        election: Election,
        random: Random,
        *,
        fetch_timeout_ms: float,
        retry_backoff_ms: float,
        now_ms: float,
    ) -> None:
        self._nodes = tuple(nodes)
        self._random = random
        self._fetch_timeout_ms = fetch_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._backoffs: dict[Address, float] = {}
        # True to ask other nodes if the leader still leads.
        self._is_suspect = False
        self._fetch_deadline_ms = now_ms + fetch_timeout_ms
        self.election = election
        self.leader: Leader | None = None
        self._follow(election, {}, now_ms)

    def next_node(self, now_ms: float) -> Address | float:
        """Return the node to ask now, or the ms to wait before asking any."""
        leader = self.leader
        if leader is not None and now_ms >= self._fetch_deadline_ms:
            self._is_suspect = True
        if leader is not None and not self._is_suspect:
            wait_ms = self._backoffs.get(leader.address, now_ms) - now_ms
            return wait_ms if wait_ms > 0 else leader.address
        first = self._random.randrange(len(self._nodes))
        rotated = (*self._nodes[first:], *self._nodes[:first])
        waits = [(self._backoffs.get(node.address, now_ms) - now_ms, node.address) for node in rotated]
        ready = next((address for wait_ms, address in waits if wait_ms <= 0), None)
        return min(waits)[0] if ready is None else ready

    def answered(self, source: Address, answer: QuorumAnswer, now_ms: float) -> bool:
        """Note a response. Return whether it came from the leader without an error, so that its content counts.

        Raises InconsistentLeader.
        """
        told = answer.election
        known = self.election
        if told.epoch == known.epoch and NO_LEADER not in (told.leader_id, known.leader_id) and told.leader_id != known.leader_id:
            raise InconsistentLeader(
                f"node {told.leader_id} is reported as leader of epoch {told.epoch}, but node {known.leader_id} leads it"
            )
        if told.epoch < known.epoch:
            self._back_off(source, now_ms)
            return False
        is_news = told.epoch > known.epoch or (told.leader_id != NO_LEADER and self.leader is None)
        if is_news:
            # Only a leader answers without an error.
            self._follow(told, answer.endpoints if answer.error else {told.leader_id: source, **answer.endpoints}, now_ms)
        if told.epoch > known.epoch or answer.error in _STALE_EPOCH:
            self._redirected(source, told, now_ms, is_news=is_news)
            return False
        if answer.error:
            self.failed(source, now_ms)
        return not answer.error

    def fetched(self, now_ms: float) -> None:
        """Note a valid answer of the leader."""
        self._is_suspect = False
        self._fetch_deadline_ms = now_ms + self._fetch_timeout_ms

    def failed(self, source: Address, now_ms: float) -> None:
        """Note that a node did not answer, or not in a way that makes sense."""
        self._back_off(source, now_ms)
        if self.leader is not None and source == self.leader.address:
            self._is_suspect = True

    def _redirected(self, source: Address, told: Election, now_ms: float, *, is_news: bool) -> None:
        if self.leader is not None and told.leader_id == self.leader.node_id and source != self.leader.address:
            # Another node says that the leader still leads, so ask the leader again.
            self.fetched(now_ms)
        elif not is_news or self.leader is None:
            self.failed(source, now_ms)

    def _follow(self, election: Election, endpoints: Mapping[int, Address], now_ms: float) -> None:
        """Note the latest ``election``. Without an address, its leader has yet to be found."""
        self.election = election
        configured = {node.node_id: node.address for node in self._nodes}
        address = endpoints.get(election.leader_id) or configured.get(election.leader_id)
        self.leader = None
        if election.leader_id != NO_LEADER and address is not None:
            self.leader = Leader(election.leader_id, *address, election.epoch)
        self._backoffs.clear()
        self.fetched(now_ms)

    def _back_off(self, source: Address, now_ms: float) -> None:
        self._backoffs[source] = now_ms + self._retry_backoff_ms


class MembershipLost(Exception):
    """The broker cannot become, or stay, a member of its cluster. The message gives the reason."""


FILE_NAME: Final = "quorum-state"
_VERSIONS: Final = (0, 1)
_ZERO_ID: Final = "A" * 22


class ElectionFile:
    """The file in the metadata log's ``directory``. ``version`` is the form last read or written."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self.version = 0
        self._file_system = file_system
        self._path = f"{directory}/{FILE_NAME}"

    def read(self) -> Election:
        """Return the election written last; epoch 0 without a file. Raises ValueError, OSError."""
        try:
            text = self._file_system.read_bytes(self._path)
        except FileNotFoundError:
            return Election()
        try:
            found = json.loads(text)
            version, epoch, leader_id = found["data_version"], found["leaderEpoch"], found.get("leaderId", NO_LEADER)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self._path} is not a quorum state file: {text!r}") from error
        if version not in _VERSIONS or not isinstance(epoch, int) or not isinstance(leader_id, int):
            raise ValueError(f"{self._path} has an unknown version: {text!r}")
        self.version = version
        return Election(epoch, leader_id)

    def write(self, election: Election, voter_ids: Iterable[int], *, version: int) -> None:
        """Replace the file, and sync it. Raises OSError."""
        fields: dict[str, object]
        if version == 0:
            fields = {
                "clusterId": "",
                "leaderId": election.leader_id,
                "leaderEpoch": election.epoch,
                "votedId": NO_LEADER,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": node_id} for node_id in voter_ids],
                "data_version": 0,
            }
        else:
            fields = {
                "leaderId": election.leader_id,
                "leaderEpoch": election.epoch,
                "votedId": NO_LEADER,
                "votedDirectoryId": _ZERO_ID,
                "data_version": 1,
            }
        self.version = version
        self._file_system.write_atomic(self._path, json.dumps(fields, separators=(",", ":")).encode())
