"""A member in a process of its own, for tests that kill it: what it has to tell the journal comes as lines of its stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict

from tests.broker_process import command_environment
from tests.clients.groups.journal import Journal
from tests.clients.groups.members import MAKES, Membership


class MemberProcess:
    """A member of ``make``, whose process may be killed, frozen and thawed."""

    def __init__(self, make: str, name: str, address: str, membership: Membership, journal: Journal) -> None:
        self.name = name
        self._journal = journal
        told = json.dumps({"make": make, "name": name, "address": address, "membership": asdict(membership)})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.clients.groups.member_process", told],
            stdout=subprocess.PIPE,
            text=True,
            env=command_environment(),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)

    def start(self) -> MemberProcess:
        self._reader.start()
        return self

    def kill9(self) -> None:
        """End it as if its machine had: it leaves nothing, it just is not there any more."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._journal.note_ended(self.name, None)

    def freeze(self) -> None:
        """Let nothing of it run, heartbeats included."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Kill it if that has not been done: a test that wants it to leave uses a member in a thread."""
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            self.kill9()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A line that was cut off by the kill tells nothing.
            if line.endswith("\n"):
                method, arguments = json.loads(line)
                getattr(self._journal, method)(self.name, *arguments)


class _Narrator(Journal):
    """Says on stdout what it is told."""

    def note_assigned(self, name, member_id, generation, partitions):
        _say("note_assigned", member_id, generation, sorted(partitions))

    def note_revoked(self, name, partitions):
        _say("note_revoked", sorted(partitions))

    def note_processed(self, name, partition, offsets):
        _say("note_processed", partition, list(offsets))

    def note_granted(self, name, offsets):
        _say("note_granted", list(offsets.items()))

    def note_ended(self, name, failure):
        _say("note_ended", failure)


def _say(method, *arguments):
    print(json.dumps([method, arguments]), flush=True)


def main() -> None:
    """Be the member that the argument describes, until killed."""
    told = json.loads(sys.argv[1])
    member = MAKES[told["make"]](told["name"], told["address"], Membership(**told["membership"]), _Narrator())
    member.start()
    member._thread.join()


if __name__ == "__main__":
    main()
