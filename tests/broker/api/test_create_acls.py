from odradek.common.acls import AclOperation, AclPermission, AclResourceType, PatternType
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.broker.api.acl_requests import create, creation, described, secured_broker
from tests.broker.api.bed import ask, make_broker
from tests.cases import each_case

GOOD = creation("allow User:a READ TOPIC t")


def test_what_was_created_is_described_and_in_force():
    broker = secured_broker()
    texts = "allow User:a READ TOPIC t", "deny User:* ALL GROUP g* 10.0.0.1"
    assert create(broker, *texts) == [(0, None), (0, None)]
    assert described(broker) == set(texts)
    decide = broker.authorization.authorizer.authorize
    assert decide("User:a", "h", AclOperation.READ, AclResourceType.TOPIC, "t").is_allowed


def test_one_that_is_there_is_created_again_without_a_record():
    broker = secured_broker()
    create(broker, "allow User:a READ TOPIC t")
    end_offset = broker.controller.log_end_offset
    assert create(broker, "allow User:a READ TOPIC t", "allow User:a READ TOPIC t") == [(0, None)] * 2
    assert broker.controller.log_end_offset == end_offset
    create(broker, "allow User:b READ TOPIC t", "allow User:b READ TOPIC t")
    assert broker.controller.log_end_offset == end_offset + 1


@each_case(
    "bad",
    [
        GOOD._replace(resource_type=AclResourceType.ANY),
        GOOD._replace(resource_pattern_type=PatternType.MATCH),
        GOOD._replace(resource_pattern_type=PatternType.ANY),
        GOOD._replace(operation=AclOperation.ANY),
        GOOD._replace(permission_type=AclPermission.ANY),
        GOOD._replace(resource_name=""),
        GOOD._replace(resource_type=AclResourceType.CLUSTER),
        GOOD._replace(principal="a"),
    ],
    ids=str,
)
def test_one_that_cannot_be_is_refused_and_the_others_are_created(bad):
    broker = secured_broker()
    answer = ask(broker, ApiKey.CREATE_ACLS, creations=[bad, GOOD])
    assert [result.error_code for result in answer.results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert answer.results[0].error_message
    assert described(broker) == {"allow User:a READ TOPIC t"}


def test_an_unknown_code_closes_the_connection():
    broker = secured_broker()
    creations = [GOOD._replace(operation=0)]
    from odradek.common.context import RequestContext, Session
    from odradek.protocol.message_types.create_acls import CreateAclsRequest

    context = RequestContext(ApiKey.CREATE_ACLS, 3, 1, None, Session("PLAINTEXT", ("127.0.0.1", 1)))
    assert broker.dispatcher.call(context, CreateAclsRequest(creations)) is CLOSE_CONNECTION


def test_without_an_authorizer_there_are_no_acls():
    answer = ask(make_broker(), ApiKey.CREATE_ACLS, creations=[GOOD])
    assert [result.error_code for result in answer.results] == [ErrorCode.SECURITY_DISABLED]


async def test_they_are_there_after_a_restart_and_in_a_snapshot():
    configs = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    async with SocketlessBroker(configs=configs, clock=VirtualClock(), seed=1) as broker:
        create(broker.core, "allow User:a READ TOPIC t*")
        await broker.stop()
        await broker.start()
        assert described(broker.core) == {"allow User:a READ TOPIC t*"}
        assert len(broker.core.authorization.authorizer.acls) == 1
