"""``quorum-state``: the latest leader epoch that a node of a quorum has seen, as Kafka keeps it beside the metadata log.

One line of JSON. A quorum of ``kraft.version`` 0, whose voters are configured, uses the first form, others use the second:

    {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
    {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}

An observer never votes.
"""

import json
from collections.abc import Iterable
from typing import Final

from odradek.controller.quorum.leader_discovery import NO_LEADER, Election
from odradek.storage.filesystem import FileSystem

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
