from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, make_broker

M = messages(ApiKey.CREATE_TOPICS)


def topic(name, partitions=-1, configs=(), assignments=()):
    return M.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[M.CreatableTopicConfig(name=key, value=value) for key, value in configs],
        assignments=[M.CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assignments],
    )


def test_a_topic_is_created_and_described(core):
    (created,) = ask(core, ApiKey.CREATE_TOPICS, topics=[topic("t", 3)]).topics
    assert (created.error_code, created.error_message) == (ErrorCode.NONE, None)
    assert (created.num_partitions, created.replication_factor) == (3, 1)
    assert created.topic_id == core.controller.image.topics["t"].topic_id


def test_the_configs_in_effect_are_told_by_name_with_their_source():
    (created,) = ask(make_broker(), ApiKey.CREATE_TOPICS, topics=[topic("t", configs=[("retention.ms", "5")])]).topics
    names = [config.name for config in created.configs]
    assert names == sorted(names)
    told = {config.name: (config.value, config.config_source) for config in created.configs}
    assert (told["retention.ms"], told["cleanup.policy"]) == (("5", 1), ("delete", 5))


def test_a_request_without_room_for_configs_gets_none():
    (created,) = ask(make_broker(), ApiKey.CREATE_TOPICS, 4, topics=[topic("t")]).topics
    assert not created.configs


def test_validate_only_answers_the_same_and_creates_nothing(core):
    (created,) = ask(core, ApiKey.CREATE_TOPICS, topics=[topic("t", 3)], validate_only=True).topics
    assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 3)
    assert created.configs
    assert core.controller.image.topics == {}


def test_what_is_wrong_with_one_topic_is_answered_for_it(core):
    answers = ask(core, ApiKey.CREATE_TOPICS, topics=[topic("bad name"), topic("t"), topic("u", 0)]).topics
    assert [(answer.name, answer.error_code) for answer in answers] == [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.INVALID_PARTITIONS),
    ]
    assert answers[0].error_message
    assert (answers[0].num_partitions, answers[0].replication_factor, answers[0].topic_id) == (-1, -1, None)
