"""The transactions' scenarios: what producers do, and all that comes of it. Their form: tests/coordinator/scenario_files.py.

    config KEY=VALUE ...              changes configs, written with underscores; first of all
    init WHO [id=] [timeout=] [as=]   InitProducerId; timeout=never is a transaction that an outside manager ends (KIP-939)
    add WHO PARTITION ... [version=] [as=]
    verify WHO PARTITION ... [as=]    AddPartitionsToTxn of a broker that has records of a partition and adds nothing
    commit WHO [version=] [as=] | abort WHO ...
    advance DURATION                  lets time pass
    refuse PARTITION ERROR | allow PARTITION       markers to a partition
    appends fail                      the next one does
    commits wait | commits go on      the high watermark
    crash                             the coordinator forgets all that is not in the log, and loads it
    state [ID]

WHO is a producer's name. Its transactional id is ``transfers`` unless ``id`` says otherwise. Its requests carry the producer id
and epoch of its last answer, written ``100/0``; ``as`` sends others. Version 2 of AddPartitions and EndTxn is that of KIP-890:
each end raises the epoch. A command that begins with ``+`` is in one turn of the loop with the next. An answer is NONE where it
has no other content.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transactions import NO_TIMEOUT_MS
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.scenario_files import duration_ms
from tests.coordinator.transaction.bed import ID, NOBODY, TIMEOUT_MS, Bed

if TYPE_CHECKING:
    from collections.abc import Callable


class _Bed(Bed):
    """Answers go to ``on_answer`` when they come."""

    on_answer: Callable[[Any], None]

    def ask(self, operation, *, run=True):
        self.runtime.write(0, operation).when_done(self.on_answer)


class _Producer:
    def __init__(self, name):
        self.name = name
        self.transactional_id = ID
        self.identity = NOBODY


class Scenario:
    """One file's coordinator and producers."""

    def __init__(self):
        self._bed = _Bed()
        self._producers = {}
        self._output = []
        self._seen = dict.fromkeys(("records", "markers", "lines"), 0)

    def run(self, command):
        """What comes of it."""
        in_turn = not command.startswith("+")
        name, *words = shlex.split(command.removeprefix("+"))
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        self._output = []
        getattr(self, f"_{name}")(names, options)
        if in_turn:
            self._bed.logs.run()
        self._output += [*self._written(), *self._marked(), *self._lines()]
        self._output += [f"  FAULT {what}: {error!r}" for what, error in self._bed.faults]
        self._bed.faults.clear()
        return self._output

    # ---------------------------------------------------------------------------------------------------- what happened

    def _fresh(self, kind, all_of_them):
        start, self._seen[kind] = self._seen[kind], len(all_of_them)
        return all_of_them[start:]

    def _written(self):
        for transactional_id, value in self._fresh("records", self._bed.records()):
            yield f"  written {transactional_id}: {_value(value)}"

    def _marked(self):
        for partition, producer_id, producer_epoch, result in self._fresh("markers", self._bed.markers):
            yield f"  marker {_partition(partition)}: {result} {producer_id}/{producer_epoch}"

    def _lines(self):
        for event, fields in self._fresh("lines", self._bed.reports.lines):
            yield f"  log: {event}: " + " ".join(f"{key}={value}" for key, value in fields.items())

    def _producer(self, name):
        return self._producers.setdefault(name, _Producer(name))

    # ----------------------------------------------------------------------------------------------------- the commands

    def _config(self, _, options):
        self._bed = _Bed(**{key: int(value) for key, value in options.items()})

    def _init(self, names, options):
        producer = self._asking("init", names, options)
        producer.transactional_id = options.get("id", producer.transactional_id)
        timeout = options.get("timeout", f"{TIMEOUT_MS}ms")
        timeout_ms = NO_TIMEOUT_MS if timeout == "never" else duration_ms(timeout)
        expected = _identity(producer, options) if "as" in options else NOBODY
        self._bed.init(expected, producer.transactional_id, timeout_ms)

    def _add(self, names, options):
        producer = self._asking("add", names, options)
        partitions = map(_parsed, names[1:])
        self._bed.add(_identity(producer, options), *partitions, **_request(producer, options))

    def _verify(self, names, options):
        producer = self._producer(names[0])
        partitions = [_parsed(name) for name in names[1:]]
        found = self._bed.verify(_identity(producer, options), *partitions, transactional_id=producer.transactional_id)
        if isinstance(found, ErrorCode):
            told = found.name
        else:
            told = " ".join(f"{_partition(each)}={code.name}" for each, code in sorted(found.items()))
        self._output.append(f"{producer.name}: verify {told}")

    def _commit(self, names, options):
        producer = self._asking("commit", names, options)
        self._bed.commit(_identity(producer, options), **_request(producer, options))

    def _abort(self, names, options):
        producer = self._asking("abort", names, options)
        self._bed.abort(_identity(producer, options), **_request(producer, options))

    def _asking(self, request, names, options):
        producer = self._producer(names[0])

        def answered(answer):
            self._output.append(f"{producer.name}: {request} {_answer(answer)}")
            if isinstance(answer, tuple) and tuple(answer) != NOBODY and "as" not in options:
                producer.identity = answer

        self._bed.on_answer = answered
        return producer

    def _advance(self, names, _):
        self._bed.advance(duration_ms(names[0]))

    def _refuse(self, names, _):
        self._bed.refusals[_parsed(names[0])] = ErrorCode[names[1]]

    def _allow(self, names, _):
        del self._bed.refusals[_parsed(names[0])]

    def _appends(self, _names, _):
        self._bed.log.failures.append(OSError("disk"))

    def _commits(self, names, _):
        self._bed.log.held_back = names[0] == "wait"
        if not self._bed.log.held_back:
            self._bed.log.release()

    def _crash(self, *_):
        self._bed.crash()

    def _state(self, names, _):
        transactional_id = names[0] if names else ID
        value = self._bed.value(transactional_id)
        self._output.append(f"{transactional_id}: {'no such id' if value is None else _value(value)}")


def _request(producer, options):
    return {"version": int(options.get("version", "0")), "transactional_id": producer.transactional_id}


def _identity(producer, options):
    return tuple(map(int, options["as"].split("/"))) if "as" in options else producer.identity


def _answer(answer):
    if isinstance(answer, KafkaError):
        return answer.code.name
    if answer is None or tuple(answer) == NOBODY:
        return "NONE"
    return "{}/{}".format(*answer)


def _parsed(name):
    topic, _, index = name.rpartition("-")
    return topic, int(index)


def _partition(partition):
    return "{}-{}".format(*partition)


def _value(value):
    if value is None:
        return "tombstone"
    told = f"{TransactionState(value.status).name} {value.producer_id}/{value.producer_epoch}"
    if value.partitions:
        told += f" partitions={','.join(map(_partition, sorted(value.partitions)))}"
    for name in ("previous_producer_id", "next_producer_id"):
        if getattr(value, name) != -1:
            told += f" {name}={getattr(value, name)}"
    return told
