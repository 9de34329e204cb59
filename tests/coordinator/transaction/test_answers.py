"""What each request is answered in each state, whoever asks: Kafka 4.3's answers, one table an API.

A row is the state of the transactional id: settled, or with a change under way, which is not there for good yet (``Adding``) or
waits for markers (``Committing``, ``Aborting``). A column is who asks, by the producer that is there for good:

    other      has another producer id
    older, before, current, after     has the epoch two before it, the one before it, its own, the next
    anybody    does not say who it is

An answer is an error, ``ok``, ``in`` for a partition that is in the transaction, or the producer that is told: ``=`` the same,
``+1`` with the next epoch, ``new`` with a new id. With ``!`` something was written.

    IM INVALID_PRODUCER_ID_MAPPING    PF PRODUCER_FENCED    CT CONCURRENT_TRANSACTIONS    IS INVALID_TXN_STATE
    TA TRANSACTION_ABORTABLE

The rows without a change under way are what Kafka 4.3.1 answered when it was asked over the wire; the others are read from its
``TransactionCoordinator``. Requests of older clients (``0``: EndTxn up to version 4, AddPartitionsToTxn up to 3) and of newer
ones (``2``) have tables of their own where it matters. States whose answers are alike have one row:
those that either brought about, or all with a change under way (``UnderWay``).
"""

from odradek.coordinator.runtime.timeline import COMMITTED
from odradek.coordinator.transaction.markers import RETRY_BACKOFF_MS
from odradek.coordinator.transaction.operations import NO_PRODUCER
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transactions import ProducerIdentity
from odradek.protocol.errors import ErrorCode
from tests.cases import each_case
from tests.coordinator.transaction.bed import A0, A1, ID, Bed
from tests.coordinator.transaction.bed import NOBODY as ANYBODY

EXPIRATION_MS = 1000
# Rows that stand for several states.
ALIKE = {
    name: (f"{name}0", f"{name}2")
    for name in ("Ongoing", "Committed", "Aborted", "Preparing", "Committing", "Aborting", "Completing")
}
ALIKE["UnderWay"] = [
    "Initializing",
    "Adding",
    "Preparing0",
    "Preparing2",
    "Fencing",
    "Committing0",
    "Committing2",
    "Aborting0",
    "Aborting2",
    "Completing0",
    "Completing2",
    "Expiring",
]

TABLES = {
    "init": """
                      other  older  before  current  after  anybody
        Unknown       new!   new!   new!    new!     new!   new!
        Empty         PF     PF     PF      +1!      PF     +1!
        EmptyAgain    PF     PF     =!      +1!      PF     +1!
        Ongoing       PF     CT!    CT!     CT!      CT!    CT!
        Committed0    PF     PF     PF      +1!      PF     +1!
        Committed2    PF     PF     =!      +1!      PF     +1!
        Aborted0      PF     PF     PF      +1!      PF     +1!
        Aborted2      PF     PF     =!      +1!      PF     +1!
        UnderWay      CT     CT     CT      CT       CT     CT
    """,
    "add": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      ok!      PF
        EmptyAgain    IM     PF     PF      ok!      PF
        Ongoing       IM     PF     PF      ok!      PF
        Committed     IM     PF     PF      ok!      PF
        Aborted       IM     PF     PF      ok!      PF
        UnderWay      CT     CT     CT      CT       CT
    """,
    "add again": """
                      other  older  before  current  after
        Empty         IM     PF     PF      ok!      PF
        Ongoing       IM     PF     PF      ok       PF
        Committed2    IM     PF     PF      ok!      PF
        Adding        CT     CT     CT      CT       CT
    """,
    # Adding, current: Kafka gives TA (docs/differences-all.md).
    "verify": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      TA       PF
        EmptyAgain    IM     PF     PF      TA       PF
        Ongoing       IM     PF     PF      in       PF
        Committed     IM     PF     PF      TA       PF
        Aborted       IM     PF     PF      TA       PF
        Initializing  IM     PF     PF      TA       PF
        Adding        IM     PF     PF      CT       PF
        Preparing     IM     PF     PF      in       PF
        Fencing       IM     PF     PF      in       PF
        Committing    IM     PF     PF      CT       PF
        Aborting      IM     PF     PF      CT       PF
        Completing    IM     PF     PF      CT       PF
        Expiring      IM     PF     PF      TA       PF
    """,
    "commit 0": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      IS       PF
        EmptyAgain    IM     PF     PF      IS       PF
        Ongoing       IM     PF     PF      ok!      PF
        Committed     IM     PF     PF      ok       PF
        Aborted       IM     PF     PF      IS       PF
        UnderWay      IM     PF     PF      CT       PF
    """,
    "abort 0": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      IS       PF
        EmptyAgain    IM     PF     PF      IS       PF
        Ongoing       IM     PF     PF      ok!      PF
        Committed     IM     PF     PF      IS       PF
        Aborted       IM     PF     PF      ok       PF
        UnderWay      IM     PF     PF      CT       PF
    """,
    "commit 2": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      IS       PF
        EmptyAgain    IM     PF     PF      IS       PF
        Ongoing       IM     PF     PF      +1!      PF
        Committed     IM     PF     =       IS       PF
        Aborted       IM     PF     IS      IS       PF
        UnderWay      CT     CT     CT      CT       CT
    """,
    "abort 2": """
                      other  older  before  current  after
        Unknown       IM     IM     IM      IM       IM
        Empty         IM     PF     PF      +1!      PF
        EmptyAgain    IM     PF     PF      +1!      PF
        Ongoing       IM     PF     PF      +1!      PF
        Committed     IM     PF     IS      +1!      PF
        Aborted       IM     PF     =       +1!      PF
        UnderWay      CT     CT     CT      CT       CT
    """,
}

REQUESTS = {
    "init": lambda bed, producer: bed.init(producer),
    "add": lambda bed, producer: bed.add(producer, A0, A1),
    "add again": lambda bed, producer: bed.add(producer, A0),
    "verify": lambda bed, producer: bed.verify(producer, A0),
    "commit 0": lambda bed, producer: bed.commit(producer),
    "abort 0": lambda bed, producer: bed.abort(producer),
    "commit 2": lambda bed, producer: bed.commit(producer, version=2),
    "abort 2": lambda bed, producer: bed.abort(producer, version=2),
}
CODES = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "IM",
    ErrorCode.PRODUCER_FENCED: "PF",
    ErrorCode.CONCURRENT_TRANSACTIONS: "CT",
    ErrorCode.INVALID_TXN_STATE: "IS",
    ErrorCode.TRANSACTION_ABORTABLE: "TA",
}
# What the coordinator has decided on in these, beyond what is there for good.
PENDING = {
    "Initializing": TransactionState.EMPTY,
    "Adding": TransactionState.ONGOING,
    "Preparing": TransactionState.PREPARE_COMMIT,
    "Fencing": TransactionState.PREPARE_ABORT,
    "Committing": TransactionState.COMPLETE_COMMIT,
    "Aborting": TransactionState.COMPLETE_ABORT,
    "Completing": TransactionState.COMPLETE_COMMIT,
    "Expiring": TransactionState.DEAD,
}
# And what is there for good.
THERE = {
    "Empty": TransactionState.EMPTY,
    "EmptyAgain": TransactionState.EMPTY,
    "Ongoing": TransactionState.ONGOING,
    "Committed": TransactionState.COMPLETE_COMMIT,
    "Aborted": TransactionState.COMPLETE_ABORT,
    "Initializing": TransactionState.EMPTY,
    "Adding": TransactionState.EMPTY,
    "Preparing": TransactionState.ONGOING,
    "Fencing": TransactionState.ONGOING,
    "Committing": TransactionState.PREPARE_COMMIT,
    "Aborting": TransactionState.PREPARE_ABORT,
    "Completing": TransactionState.PREPARE_COMMIT,
    "Expiring": TransactionState.EMPTY,
}


def cells():
    """(API, state, who asks, the answer)."""
    for api, text in TABLES.items():
        titles, *rows = (line.split() for line in text.splitlines() if line.strip())
        for name, *answers in rows:
            for state in ALIKE.get(name, (name,)):
                yield from ((api, state, who, answer) for who, answer in zip(titles, answers, strict=True))


def bring(state):
    """A bed whose transactional id is in ``state``, the last three epochs having been its producer's."""
    bed = Bed(transactional_id_expiration_ms=EXPIRATION_MS, remove_expired_interval_ms=10 * EXPIRATION_MS)
    if state == "Unknown":
        return bed
    producer = [bed.init() for _ in range(3)][-1]
    version = int(state[-1]) if state[-1].isdigit() else 0
    name = state.rstrip("02")
    if name == "EmptyAgain":
        bed.init(producer)
    elif name == "Adding":
        bed.log.held_back = True
        bed.add(producer, A0)
    elif name == "Initializing":
        bed.log.held_back = True
        bed.init()
    elif name == "Expiring":
        bed.log.held_back = True
        bed.advance(10 * EXPIRATION_MS)
    elif name != "Empty":
        bed.add(producer, A0, version=version)
        end(bed, name, producer, version)
    return bed


def end(bed, name, producer, version):
    """From Ongoing on."""
    if name in {"Committing", "Aborting", "Completing"}:
        bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    if name in {"Preparing", "Fencing"}:
        bed.log.held_back = True
    if name == "Fencing":
        bed.init()
    elif name != "Ongoing":
        bed.end(producer, name not in {"Aborted", "Aborting"}, version=version)
    if name == "Completing":
        bed.log.held_back = True
        bed.refusals.clear()
        bed.advance(RETRY_BACKOFF_MS)


def asking(who, there):
    """The producer that asks, by the one that is there for good."""
    producer_id, epoch = there
    match who:
        case "anybody":
            return ANYBODY
        case "other":
            return ProducerIdentity(producer_id + 1000, epoch)
    return ProducerIdentity(producer_id, epoch + {"older": -2, "before": -1, "current": 0, "after": 1}[who])


def told(outcome, there):
    """An outcome as the tables have it."""
    if isinstance(outcome, dict):
        return CODES.get(outcome[A0], "in")
    if isinstance(outcome, ErrorCode):
        return CODES[outcome]
    if outcome is None or outcome == NO_PRODUCER:
        return "ok"
    producer_id, epoch = outcome
    if producer_id != there.producer_id:
        return "new"
    return {0: "=", 1: "+1"}[epoch - there.producer_epoch]


@each_case(("api", "state", "who", "answer"), list(cells()))
def test_the_answer_is_the_one_that_kafka_gives(api, state, who, answer):
    bed = bring(state)
    value = bed.shard.transactions.by_id.get_at(ID, COMMITTED)
    # Of an id that is not there nobody is the producer: any will do.
    there = ProducerIdentity(99, 2) if value is None else ProducerIdentity(value.producer_id, value.producer_epoch)
    written = bed.log.log_end_offset
    outcome = told(REQUESTS[api](bed, asking(who, there)), there)
    assert outcome + "!" * (bed.log.log_end_offset > written) == answer


@each_case("state", sorted({state for _, state, _, _ in cells()}))
def test_the_rows_are_what_they_are_called(state):
    bed = bring(state)
    name = state.rstrip("02")
    assert bed.shard.transactions.pending == ({ID: PENDING[name]} if name in PENDING else {})
    value = bed.shard.transactions.by_id.get_at(ID, COMMITTED)
    assert (value is None) == (name == "Unknown")
    if value is not None:
        assert value.status == THERE[name]
    if state[-1].isdigit():
        assert value.client_transaction_version == int(state[-1])


def test_every_state_is_asked_of_whoever_asks():
    apis = {}
    for api, state, _, _ in cells():
        apis.setdefault(api, set()).add(state)
    whole = {api: states for api, states in apis.items() if api != "add again"}
    assert all(states == whole["init"] for states in whole.values())
