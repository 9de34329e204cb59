"""What tests of transactions ask a raw client's broker, and what it answers in short."""

from odradek.protocol.api_keys import ApiKey


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
