"""A request that finds a change of its transactional id under way is decided when that has ended, or when its time is over."""

from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transactions import ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transaction.bed import A0, A1, B0, ID

MAX_WAIT_MS = 100


class Waiting:
    """A request for ``partition`` that waits until the transactional id is settled; ``answers`` has its outcome."""

    def __init__(self, bed, producer, partition, transactional_id=ID):
        self.answers = []
        identity = ProducerIdentity(*producer)

        def decide():
            bed.runtime.write(
                0, lambda shard: shard.add_partitions(transactional_id, identity, frozenset({partition}), 2)
            ).when_done(self.answers.append)

        bed.shard.transactions.decide_when_settled(transactional_id, decide, MAX_WAIT_MS)
        bed.logs.run()

    @property
    def codes(self):
        return [answer.code if isinstance(answer, KafkaError) else answer for answer in self.answers]


def ending(bed, *partitions):
    """The producer's next identity, after a commit whose marker for the first of ``partitions`` is on its way."""
    producer = bed.init()
    bed.add(producer, *partitions, version=2)
    bed.remote.add(partitions[0])
    return bed.commit(producer, version=2)


def test_it_is_decided_when_the_last_marker_has_arrived(bed):
    producer = ending(bed, A0, B0)
    waiting = Waiting(bed, producer, A1)
    assert waiting.codes == []
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert (waiting.codes, bed.state()) == ([None], TransactionState.ONGOING)


def test_it_waits_until_the_completion_is_replicated(bed):
    producer = ending(bed, A0)
    waiting = Waiting(bed, producer, A1)
    bed.log.held_back = True
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert waiting.codes == []
    bed.log.release(bed.log.log_end_offset)
    bed.logs.run()
    bed.log.release(bed.log.log_end_offset)
    bed.logs.run()
    assert waiting.codes == [None]


def test_two_that_wait_are_decided_one_after_the_other(bed):
    producer = ending(bed, A0)
    first, second = Waiting(bed, producer, A1), Waiting(bed, producer, B0)
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert (first.codes, second.codes) == ([None], [None])
    assert bed.value().partitions == {A1, B0}


def test_after_its_time_it_is_told_what_is_under_way(bed):
    producer = ending(bed, A0)
    waiting = Waiting(bed, producer, A1)
    bed.advance(MAX_WAIT_MS - 1)
    assert waiting.codes == []
    bed.advance(1)
    assert waiting.codes == [ErrorCode.CONCURRENT_TRANSACTIONS]
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert waiting.codes == [ErrorCode.CONCURRENT_TRANSACTIONS]


def test_an_id_that_is_settled_is_decided_at_once(bed):
    producer = bed.init()
    assert Waiting(bed, producer, A0).codes == [None]


def test_it_is_decided_when_the_change_could_not_be_appended(bed):
    producer = bed.init()
    bed.log.held_back = True
    answers = []
    identity = ProducerIdentity(*producer)
    bed.runtime.write(0, lambda shard: shard.add_partitions(ID, identity, frozenset({A0}), 2)).when_done(answers.append)
    waiting = Waiting(bed, producer, A1)
    assert waiting.codes == []
    bed.runtime.unload(0)
    assert answers[0].code == ErrorCode.NOT_COORDINATOR
    bed.advance(MAX_WAIT_MS)
    assert waiting.codes == [ErrorCode.NOT_COORDINATOR]
