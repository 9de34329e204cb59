"""A topic or a group that is deleted in the middle of a transaction: the transaction ends, and nobody waits for what is gone."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.raw_client import RawClient, fetch_fields, produce_fields

TIMEOUT_MS = 60_000
READ_COMMITTED = 1
_COMING = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})


def accepted(client, api_key, version, **fields):
    """The answer, once the coordinator is there."""
    while True:
        answer = client.call(api_key, version, **fields)
        if answer.error_code not in _COMING:
            assert answer.error_code == ErrorCode.NONE
            return answer


class Transaction:
    """A raw client's transaction on two topics and a group, as newer clients do it or, ``is_older``, those before KIP-890."""

    def __init__(self, client, name, *, is_older):
        self.client, self.name, self.is_older = client, name, is_older
        self.gone, self.kept, self.group = f"gone-{name}", f"kept-{name}", f"group-{name}"
        for topic in (self.gone, self.kept):
            create(client, topic)
        for key_type in (0, 1):
            accepted(client, ApiKey.FIND_COORDINATOR, 3, key=name, key_type=key_type)
        made = accepted(client, ApiKey.INIT_PRODUCER_ID, 5, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
        self.id, self.epoch = made.producer_id, made.producer_epoch

    @property
    def _producer(self):
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    def add(self, topic, *partitions):
        fields = {f"v3_and_below_{key}": value for key, value in self._producer.items()}
        topics = [{"name": topic, "partitions": partitions}]
        answer = self.client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, v3_and_below_topics=topics, **fields)
        return [each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition]

    def write(self, topic, partition=0, sequence=0):
        if self.is_older:
            assert self.add(topic, partition) == [ErrorCode.NONE]
        batch = build_batch(
            [Record(value=b"x", timestamp=1)],
            transactional=True,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
        )
        fields = produce_fields(topic, batch, partition=partition)
        answer = self.client.call(ApiKey.PRODUCE, 11 if self.is_older else 12, transactional_id=self.name, **fields)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    def commit_offset(self, topic, offset, partition=0):
        if self.is_older:
            assert (
                self.client.call(ApiKey.ADD_OFFSETS_TO_TXN, 4, group_id=self.group, **self._producer).error_code == ErrorCode.NONE
            )
        rows = [{"partition_index": partition, "committed_offset": offset, "committed_metadata": None}]
        answer = self.client.call(
            ApiKey.TXN_OFFSET_COMMIT,
            4 if self.is_older else 5,
            group_id=self.group,
            topics=[{"name": topic, "partitions": rows}],
            **self._producer,
        )
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def end(self, *, commit=True):
        answer = accepted(self.client, ApiKey.END_TXN, 4 if self.is_older else 5, committed=commit, **self._producer)
        if not self.is_older:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def state(self):
        """The state, and where a marker is still to come."""
        (found,) = self.client.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name]).transaction_states
        return found.transaction_state, [topic.topic for topic in found.topics]


def create(client, name):
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1}]
    assert client.call(ApiKey.CREATE_TOPICS, 7, topics=topics).topics[0].error_code == ErrorCode.NONE


def delete(client, name):
    answer = client.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=5000)
    assert answer.responses[0].error_code == ErrorCode.NONE


def delete_group(client, group):
    assert client.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group]).results[0].error_code == ErrorCode.NONE


def stable(client, topic, partition=0):
    """(last stable offset, high watermark)."""
    answer = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0, partition=partition, isolation_level=READ_COMMITTED))
    found = answer.responses[0].partitions[0]
    return found.last_stable_offset, found.high_watermark


def committed(client, group, topic):
    """A group's offsets of the topic's two partitions, as a reader who wants stable ones is told."""
    topics = [{"name": topic, "partition_indexes": [0, 1]}]
    answer = accepted(client, ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=True)
    return [each.error_code or each.committed_offset for each in answer.topics[0].partitions]


def groups(client):
    return [group.group_id for group in accepted(client, ApiKey.LIST_GROUPS, 4, states_filter=[]).groups]


@pytest.fixture(params=[True, False], ids=["older", "newer"])
def is_older(request):
    return request.param


@pytest.fixture
def transaction(client, new_name, is_older):
    return Transaction(client, new_name(), is_older=is_older)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_on_the_topics_that_are_left(transaction, client, commit):
    transaction.write(transaction.gone)
    transaction.write(transaction.kept)
    delete(client, transaction.gone)
    assert stable(client, transaction.kept) == (0, 1)
    transaction.end(commit=commit)
    assert transaction.state() == ("CompleteCommit" if commit else "CompleteAbort", [])
    assert stable(client, transaction.kept) == (2, 2)


def test_a_transaction_of_which_nothing_is_left_ends_and_the_next_one_begins(transaction, client):
    transaction.write(transaction.gone)
    delete(client, transaction.gone)
    transaction.end()
    transaction.write(transaction.kept)
    transaction.end()
    assert stable(client, transaction.kept) == (2, 2)


def test_a_topic_that_is_gone_cannot_be_added_any_more(transaction, client):
    transaction.write(transaction.gone)
    delete(client, transaction.gone)
    assert transaction.add(transaction.gone, 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert transaction.state() == ("Ongoing", [transaction.gone])


def test_a_new_topic_of_the_same_name_is_not_held_up(transaction, client):
    transaction.write(transaction.gone)
    delete(client, transaction.gone)
    create(client, transaction.gone)
    assert stable(client, transaction.gone) == (0, 0)
    transaction.end()
    # As in Kafka, which knows a transaction's partitions by name: the new topic has the marker.
    assert stable(client, transaction.gone) == (1, 1)
    transaction.write(transaction.gone)
    transaction.end()
    assert stable(client, transaction.gone) == (3, 3)


def test_a_topic_that_is_gone_is_no_matter_after_a_crash_either(broker_process, is_older):
    served = broker_process()
    with RawClient(served.host, served.port) as client:
        transaction = Transaction(client, "transfers", is_older=is_older)
        transaction.write(transaction.gone)
        transaction.write(transaction.kept)
        delete(client, transaction.gone)
    served.kill9()
    served.start()
    with RawClient(served.host, served.port) as client:
        transaction.client = client
        transaction.end()
        assert transaction.state() == ("CompleteCommit", [])
        assert stable(client, transaction.kept) == (2, 2)


def test_offsets_of_a_topic_that_is_gone_are_gone_with_it(transaction, client):
    transaction.commit_offset(transaction.gone, 5)
    transaction.commit_offset(transaction.kept, 6)
    delete(client, transaction.gone)
    transaction.end()
    assert committed(client, transaction.group, transaction.kept) == [6, -1]
    assert committed(client, transaction.group, transaction.gone) == [-1, -1]


@pytest.mark.parametrize("commit", [True, False])
def test_a_group_that_is_deleted_does_not_come_back_when_the_transaction_ends(transaction, client, commit):
    transaction.commit_offset(transaction.kept, 5)
    assert transaction.group in groups(client)
    assert committed(client, transaction.group, transaction.kept) == [ErrorCode.UNSTABLE_OFFSET_COMMIT, -1]
    delete_group(client, transaction.group)
    assert committed(client, transaction.group, transaction.kept) == [-1, -1]
    transaction.end(commit=commit)
    assert transaction.state()[1] == []
    assert transaction.group not in groups(client)
    assert committed(client, transaction.group, transaction.kept) == [-1, -1]


def test_what_the_transaction_commits_after_its_group_was_deleted_counts(transaction, client):
    transaction.commit_offset(transaction.kept, 5)
    delete_group(client, transaction.group)
    transaction.commit_offset(transaction.kept, 9, partition=1)
    transaction.end()
    assert committed(client, transaction.group, transaction.kept) == [-1, 9]


def test_a_deleted_group_is_gone_after_a_crash_too(broker_process, is_older):
    served = broker_process()
    with RawClient(served.host, served.port) as client:
        transaction = Transaction(client, "transfers", is_older=is_older)
        transaction.commit_offset(transaction.kept, 5)
        delete_group(client, transaction.group)
        transaction.end()
    served.kill9()
    served.start()
    with RawClient(served.host, served.port) as client:
        assert groups(client) == []
        assert committed(client, transaction.group, transaction.kept) == [-1, -1]
