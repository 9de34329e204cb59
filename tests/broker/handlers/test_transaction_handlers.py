"""The APIs of transactions over a raw socket, in every version: what each is told, and in which words."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.raw_client import RawClient, fetch_fields, produce_fields

NO_GROUP = "no-group"


@pytest.fixture
def new_id(new_name):
    """Transactional ids that nobody else has."""
    return lambda: f"transactional-{new_name()}"


def init(client, transactional_id, version=5, **fields):
    answer = client.call(
        ApiKey.INIT_PRODUCER_ID, version, transactional_id=transactional_id, transaction_timeout_ms=60_000, **fields
    )
    return answer.error_code or (answer.producer_id, answer.producer_epoch)


def add(client, transactional_id, producer, topic, version=3, partitions=(0,), verify_only=False):
    topics = [{"name": topic, "partitions": partitions}]
    if version < 4:
        answer = client.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        results = answer.results_by_topic_v3_and_below
    else:
        transaction = {
            "transactional_id": transactional_id,
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "verify_only": verify_only,
            "topics": topics,
        }
        answer = client.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, transactions=[transaction])
        (result,) = answer.results_by_transaction
        assert result.transactional_id == transactional_id
        results = result.topic_results
    assert [result.name for result in results] == [topic]
    return [each.partition_error_code for each in results[0].results_by_partition]


def end(client, transactional_id, producer, version=4, committed=True):
    answer = client.call(
        ApiKey.END_TXN,
        version,
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )
    return answer if version >= 5 and not answer.error_code else answer.error_code


def add_offsets(client, transactional_id, producer, group, version=4):
    return client.call(
        ApiKey.ADD_OFFSETS_TO_TXN,
        version,
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group,
    ).error_code


def commit_offset(client, transactional_id, producer, group, topic, version=4, **fields):
    partitions = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": None}]
    answer = client.call(
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[{"name": topic, "partitions": partitions}],
        **fields,
    )
    return answer.topics[0].partitions[0].error_code


def committed(client, group, topic, *, require_stable=False):
    topics = [{"name": topic, "partition_indexes": [0]}]
    answer = client.call(ApiKey.OFFSET_FETCH, 9, groups=[{"group_id": group, "topics": topics}], require_stable=require_stable)
    (partition,) = answer.groups[0].topics[0].partitions
    return partition.error_code or partition.committed_offset


def described(client, transactional_id):
    (state,) = client.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[transactional_id]).transaction_states
    return state


def listed(client, version=2, **filters):
    return client.call(ApiKey.LIST_TRANSACTIONS, version, state_filters=(), producer_id_filters=(), **filters)


@pytest.mark.parametrize("version", range(7))
def test_a_transactional_id_has_a_producer_in_every_version(client, new_id, version):
    name = new_id()
    producer_id, epoch = init(client, name, version)
    assert (producer_id >= 0, epoch) == (True, 0)
    assert init(client, name, version) == (producer_id, 1)


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)]
)
def test_a_producer_that_is_fenced_is_told_so_in_the_words_of_its_version(client, new_id, version, code):
    name = new_id()
    init(client, name)
    assert init(client, name, version, producer_id=10_000, producer_epoch=0) == code


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added_in_every_version(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    assert add(client, name, producer, topic[0], version, (0, 1)) == [ErrorCode.NONE, ErrorCode.NONE]
    state = described(client, name)
    assert (state.transaction_state, state.topics[0].topic, list(state.topics[0].partitions)) == ("Ongoing", topic[0], [0, 1])


@pytest.mark.parametrize("version", range(6))
def test_where_a_partition_does_not_exist_none_is_added(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    codes = add(client, name, producer, topic[0], version, (0, 9))
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [each.transaction_state for each in listed(client, transactional_id_pattern=name).transaction_states] == ["Empty"]


@pytest.mark.parametrize("version", [4, 5])
def test_verification_adds_nothing(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    assert add(client, name, producer, topic[0], version, (0, 1), verify_only=True) == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_ABORTABLE,
    ]
    assert list(described(client, name).topics[0].partitions) == [0]


@pytest.mark.parametrize("version", range(6))
def test_the_epoch_before_is_fenced_in_the_words_of_the_version(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    init(client, name)
    code = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert add(client, name, producer, topic[0], version) == [code]
    assert add_offsets(client, name, producer, NO_GROUP, min(version, 4)) == code
    if version < 5:
        assert end(client, name, producer, version) == code


@pytest.mark.parametrize("version", range(5))
def test_a_transaction_is_ended_in_every_version(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    assert end(client, name, producer, version) == ErrorCode.NONE
    assert described(client, name).transaction_state == "CompleteCommit"
    assert end(client, name, producer, version, committed=False) == ErrorCode.INVALID_TXN_STATE


def test_since_version_5_the_next_transaction_has_an_epoch_of_its_own(client, new_id, topic):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    answer = end(client, name, producer, 5, committed=False)
    assert (answer.producer_id, answer.producer_epoch) == (producer[0], 1)


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_a_transaction_count_when_it_is_committed(client, new_id, new_name, topic, version):
    name, group = new_id(), new_name()
    producer = init(client, name)
    assert add_offsets(client, name, producer, group, version) == ErrorCode.NONE
    assert commit_offset(client, name, producer, group, topic[0], version) == ErrorCode.NONE
    assert committed(client, group, topic[0]) == -1
    assert committed(client, group, topic[0], require_stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    end(client, name, producer)
    assert committed(client, group, topic[0], require_stable=True) == 5


def test_since_version_5_the_groups_partition_is_added_by_the_commit(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    assert commit_offset(client, name, producer, group, topic[0], 5) == ErrorCode.NONE
    end(client, name, producer, 5)
    assert committed(client, group, topic[0]) == 5


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_a_group_that_was_not_added_are_refused(client, new_id, new_name, topic, version):
    name, group = new_id(), new_name()
    producer = init(client, name)
    code = ErrorCode.INVALID_TXN_STATE if version < 4 else ErrorCode.TRANSACTION_ABORTABLE
    assert commit_offset(client, name, producer, group, topic[0], version) == code


def test_offsets_of_a_topic_that_is_not_there_are_refused(client, new_id, new_name):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    assert commit_offset(client, name, producer, group, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_zombie_whose_generation_is_gone_cannot_commit_offsets(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    code = commit_offset(client, name, producer, group, topic[0], generation_id=3, member_id="zombie")
    assert code == ErrorCode.ILLEGAL_GENERATION


def test_since_version_12_produce_adds_the_partitions_it_writes_to(client, new_id, topic):
    name = new_id()
    producer_id, epoch = init(client, name)
    batch = build_batch(
        [Record(value=b"v", timestamp=1)], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
    )
    partitions = [{"index": index, "records": batch} for index in range(2)]
    topics = [{"name": topic[0], "partition_data": partitions}]
    answer = client.call(ApiKey.PRODUCE, 12, transactional_id=name, acks=-1, timeout_ms=5000, topic_data=topics)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [ErrorCode.NONE, ErrorCode.NONE]
    assert list(described(client, name).topics[0].partitions) == [0, 1]
    assert end(client, name, (producer_id, epoch), 5).producer_epoch == 1


@pytest.mark.parametrize("version", range(6))
def test_nothing_is_known_of_an_id_that_was_never_initialized(client, new_id, topic, version):
    name = new_id()
    assert add(client, name, (1, 0), topic[0], version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert end(client, name, (1, 0), version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert described(client, name).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_transactional_id_without_a_name_is_invalid(client, topic):
    assert init(client, "") == ErrorCode.INVALID_REQUEST
    assert add(client, "", (1, 0), topic[0]) == [ErrorCode.INVALID_REQUEST]
    assert end(client, "", (1, 0)) == ErrorCode.INVALID_REQUEST
    assert described(client, "").error_code == ErrorCode.INVALID_REQUEST


def test_a_transaction_is_described_as_it_is(client, new_id, topic):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    state = described(client, name)
    assert (state.producer_id, state.producer_epoch, state.transaction_state) == (*producer, "Ongoing")
    assert state.transaction_timeout.total_seconds() == 60


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_by_state_and_producer(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    answer = client.call(
        ApiKey.LIST_TRANSACTIONS, version, state_filters=("Ongoing", "Nonsense"), producer_id_filters=(producer[0],)
    )
    assert [(each.transactional_id, each.transaction_state) for each in answer.transaction_states] == [(name, "Ongoing")]
    assert list(answer.unknown_state_filters) == ["Nonsense"]


def test_only_unknown_states_are_no_transactions(client, new_id):
    init(client, new_id())
    answer = client.call(ApiKey.LIST_TRANSACTIONS, 2, state_filters=("Nonsense",), producer_id_filters=())
    assert (list(answer.transaction_states), list(answer.unknown_state_filters)) == ([], ["Nonsense"])


def test_transactions_are_listed_by_a_pattern_of_the_whole_name(client, new_id):
    names = [new_id() for _ in range(2)]
    for name in names:
        init(client, name)
    answer = listed(client, transactional_id_pattern=f"{names[0][:-1]}{names[0][-1]}")
    assert [each.transactional_id for each in answer.transaction_states] == [names[0]]
    assert listed(client, transactional_id_pattern="(").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert listed(client, transactional_id_pattern="(?=a)").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_young_transactions_are_not_among_the_long_ones(client, new_id, topic):
    name = new_id()
    add(client, name, init(client, name), topic[0])
    answer = listed(client, duration_filter=60_000, transactional_id_pattern=name)
    assert list(answer.transaction_states) == []


def test_who_looks_after_the_commit_was_answered_sees_all_of_it(broker, client, new_id, topic, new_name):
    name, group = new_id(), new_name()
    producer = init(client, name)
    batch = {"producer_id": producer[0], "transactional": True}
    with RawClient(broker.host, broker.port) as reader:
        for number in range(50):
            records = build_batch([Record(value=b"v")], producer_epoch=producer[1], base_sequence=0, **batch)
            fields = produce_fields(topic[0], records) | {"transactional_id": name}
            produced = client.call(ApiKey.PRODUCE, 12, **fields).responses[0].partition_responses[0]
            assert produced.error_code == ErrorCode.NONE
            assert commit_offset(client, name, producer, group, topic[0], version=5) == ErrorCode.NONE
            answer = end(client, name, producer, version=5)
            producer = (answer.producer_id, answer.producer_epoch)
            fetched = reader.call(ApiKey.FETCH, 12, **fetch_fields(topic[0], 2 * number, isolation_level=1))
            assert fetched.responses[0].partitions[0].last_stable_offset == 2 * number + 2
            assert committed(reader, group, topic[0], require_stable=True) == 5
