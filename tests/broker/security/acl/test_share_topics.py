"""ShareFetch and ShareAcknowledge require READ on each topic, of the request and of the session."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import share_acknowledge, share_fetch
from tests.broker.security.acl.bed import Secured

NAMES = {"group_id": "g", "member_id": "m"}
FETCH = {**NAMES, "max_bytes": 1, "max_records": 1}
DENIED, MISSING = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_ID_NOT_FOUND


def codes(response):
    return [data.error_code for topic in response.responses for data in topic.partitions]


async def test_a_partition_of_a_topic_that_the_client_may_not_read_is_refused_and_stays_in_the_session():
    secured = Secured("t")
    secured.allow("READ GROUP g")
    topic_id = secured.topic_id("t")
    asked = [share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(0)])]
    assert codes(secured.ask(ApiKey.SHARE_FETCH, **FETCH, topics=asked)) == [DENIED]
    assert codes(secured.ask(ApiKey.SHARE_FETCH, **FETCH, share_session_epoch=1)) == [DENIED]
    batches = [share_acknowledge.AcknowledgementBatch(0, 0, [1])]
    acknowledged = [share_acknowledge.AcknowledgeTopic(topic_id, [share_acknowledge.AcknowledgePartition(0, batches)])]
    assert codes(secured.ask(ApiKey.SHARE_ACKNOWLEDGE, **NAMES, share_session_epoch=2, topics=acknowledged)) == [DENIED]
    secured.allow("READ TOPIC t")
    assert codes(secured.ask(ApiKey.SHARE_FETCH, **FETCH, share_session_epoch=3)) == [MISSING]
    again = secured.ask(ApiKey.SHARE_ACKNOWLEDGE, **NAMES, share_session_epoch=4, topics=acknowledged)
    assert DENIED not in codes(again)
