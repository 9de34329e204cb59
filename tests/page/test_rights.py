"""A user sees and changes as much as ACLs allow, and is told that something is hidden."""

import pytest

from odradek.client.login import Login
from odradek.page import actions, group_actions
from odradek.page.actions import ActionFailed
from odradek.page.facts.cluster import cluster
from odradek.page.facts.findings import findings
from odradek.page.facts.group import group
from odradek.page.facts.overview import overview
from odradek.page.facts.records import Search, at_start, read_forward, search
from odradek.page.facts.requests import clients, timeline
from odradek.page.facts.source import Denied, Missing
from odradek.page.facts.topic import segments, topic
from odradek.page.facts.transactions import transactions
from odradek.page.group_actions import Target
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_acls import AclCreation, CreateAclsRequest
from odradek.testing import Broker
from tests.page.conftest import page_of, producing
from tests.page.test_group import commit

USERS = "user_admin=pw user_alice=pw"
JAAS = f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS};"
ALICE = Login("PLAIN", "alice", "pw")
ADMIN = Login("PLAIN", "admin", "pw")
READ, WRITE, DESCRIBE = 3, 4, 8
TOPIC, GROUP, CLUSTER = 2, 3, 4
AS_ADMIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "admin",
    "sasl_plain_password": "pw",
}


@pytest.fixture
async def broker():
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": 0,
    }
    async with Broker(configs=configs) as broker:
        await broker.create_topics({"seen": 1, "hidden": 1})
        async with producing(broker, **AS_ADMIN) as producer:
            await producer.send_and_wait("seen", b"for alice")
            await producer.send_and_wait("hidden", b"secret")
        yield broker


async def allow(broker, resource_type, name, operation):
    made = AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )
    [result] = (await broker.ask(ApiKey.CREATE_ACLS, CreateAclsRequest(creations=[made]), 3)).results
    assert not result.error_code


async def test_a_user_sees_only_what_acls_allow_and_is_told_that_something_is_hidden(broker):
    await allow(broker, TOPIC, "seen", READ)
    await allow(broker, GROUP, "mine", READ)
    for group_id in ("mine", "theirs"):
        await commit(broker, group_id, settings=AS_ADMIN, seen=0, hidden=0)
    async with page_of(broker, ALICE) as source:
        found = await overview(source)
        assert [row.name for row in found.topics] == ["seen"]
        assert [row.group for row in found.groups] == ["mine"]
        assert (found.clients, found.errors, found.is_partial) == ((), (), True)
        assert (found.topics[0].records, found.topics[0].disk_bytes, found.brokers[0].log_bytes) == (1, None, None)
        assert [row.topic for row in (await group(source, "mine")).partitions] == ["seen"]
        described = await topic(source, "seen")
        assert (described.is_partial, described.partitions[0].size_bytes, described.configs) == (True, None, ())
        whole = await cluster(source)
        assert (whole.topics, whole.quorum, whole.is_partial) == (1, None, True)
        assert (await transactions(source)).is_partial
        assert [record.value.text for record in (await read_forward(source, "seen", await at_start(source, "seen"))).records] == [
            "for alice"
        ]
        assert (await segments(source, "seen", 0)).log_end_offset == 1


async def test_what_a_user_may_not_see_is_refused(broker):
    await allow(broker, TOPIC, "seen", DESCRIBE)
    async with page_of(broker, ALICE) as source:
        start = await at_start(source, "seen")
        for asked in (
            read_forward(source, "seen", start),
            search(source, "seen", Search("a"), cursor=start),
            timeline(source),
            clients(source),
            findings(source),
        ):
            with pytest.raises(Denied):
                await asked
        for asked in (topic(source, "hidden"), segments(source, "hidden", 0), at_start(source, "hidden")):
            with pytest.raises((Denied, Missing)):
                await asked
        with pytest.raises(Missing):
            await group(source, "theirs")


async def test_a_user_changes_only_what_acls_allow(broker):
    await allow(broker, TOPIC, "seen", DESCRIBE)
    async with page_of(broker, ALICE) as source:
        for asked in (
            actions.create_topic(source, "another"),
            actions.delete_topic(source, "seen"),
            actions.add_partitions(source, "seen", 2),
            actions.set_config(source, "seen", "retention.ms", "1"),
            actions.produce(source, "seen", None, b"1"),
            actions.delete_records(source, "seen", 0, 1),
            group_actions.set_offsets(source, "mine", [("seen", 0)], Target("end")),
            group_actions.delete_offsets(source, "mine", [("seen", 0)]),
            group_actions.delete_group(source, "mine"),
            group_actions.remove_member(source, "mine", "m"),
            group_actions.abort_transaction(source, "t"),
            group_actions.abort_hanging(source, "seen", 0, 1),
        ):
            with pytest.raises(ActionFailed):
                await asked
        await allow(broker, TOPIC, "seen", WRITE)
        assert await actions.produce(source, "seen", None, b"1") == (0, 1)


async def test_describe_on_the_cluster_shows_clients_and_sizes(broker):
    await allow(broker, TOPIC, "*", DESCRIBE)
    await allow(broker, CLUSTER, "kafka-cluster", DESCRIBE)
    async with page_of(broker, ALICE) as source:
        found = await overview(source)
        assert (len(found.topics), found.is_partial) == (2, False)
        assert found.brokers[0].log_bytes > 0
        assert {row.about.principal for row in found.clients} == {"User:alice"}
        assert (await cluster(source)).quorum is not None


async def test_a_wrong_password_is_refused(broker):
    async with page_of(broker, Login("PLAIN", "alice", "wrong")) as source:
        with pytest.raises(Denied):
            await overview(source)


async def test_a_super_user_sees_everything(broker):
    async with page_of(broker, ADMIN) as source:
        found = await overview(source)
        assert ([row.name for row in found.topics], found.is_partial) == (["hidden", "seen"], False)
