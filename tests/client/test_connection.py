"""The client's protocol without I/O, joined to a peer by bytes in whatever pieces they come."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.api import (
    Api,
    Disconnected,
    InvalidFrame,
    InvalidRequest,
    NegotiationFailed,
    TooManyRequests,
    UnexpectedResponse,
    UnreadableResponse,
    UnsupportedVersion,
)
from odradek.client.connection import TRANSITIONS, ClientConnection, ConnectionState, IllegalTransition
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from tests.client.peer import EVERY_VERSION, Peer, encoded

FETCH = Api(ApiKey.FETCH)
HEARTBEAT = Api(ApiKey.HEARTBEAT)
METADATA = Api(ApiKey.METADATA)
PRODUCE_BY_NAME = Api(ApiKey.PRODUCE, 3, 12)

HeartbeatRequest = messages(ApiKey.HEARTBEAT).HeartbeatRequest
FetchRequest = messages(ApiKey.FETCH).FetchRequest


def receive(connection, data, piece=1 << 20):
    """The responses that are whole after these bytes, which come in pieces of at most that size."""
    responses = []
    while data:
        room = connection.writable()
        count = min(len(room), len(data), piece)
        room[:count] = data[:count]
        data = data[count:]
        connection.filled(count)
        while (received := connection.next_response()) is not None:
            responses.append(received)
    return responses


def sent_by(connection):
    return b"".join(connection.data_to_send())


def exchange(connection, peer):
    """Carry bytes to and fro until nobody has anything to say."""
    responses = []
    while data := sent_by(connection):
        responses += receive(connection, peer.receive(data))
    return responses


def ready(peer, **limits):
    connection = ClientConnection("me", **limits)
    connection.negotiate()
    assert exchange(connection, peer) == []
    assert connection.state is ConnectionState.READY
    return connection


# Versions.


def test_the_newest_common_version_is_sent():
    peer = Peer(served={**EVERY_VERSION, ApiKey.HEARTBEAT: (1, 2)})
    connection = ready(peer)
    for api in (HEARTBEAT, Api(ApiKey.HEARTBEAT, 0, 1), METADATA):
        connection.send(api, messages(api.key).request())
    exchange(connection, peer)
    assert peer.asked == [
        (ApiKey.API_VERSIONS, 5, "me"),
        (ApiKey.HEARTBEAT, 2, "me"),
        (ApiKey.HEARTBEAT, 1, "me"),
        (ApiKey.METADATA, 13, "me"),
    ]


@pytest.mark.parametrize(("says_what_it_knows", "asked"), [(True, [5, 2]), (False, [5, 0])])
def test_an_older_node_is_asked_again_in_a_version_that_it_knows(says_what_it_knows, asked):
    peer = Peer(served={**EVERY_VERSION, ApiKey.API_VERSIONS: (0, 2)}, says_what_it_knows=says_what_it_knows)
    connection = ready(peer)
    assert [version for _, version, _ in peer.asked] == asked
    assert connection.served[ApiKey.METADATA] == (0, 13)


def test_a_node_that_refuses_even_the_versions_that_it_names_is_not_asked_for_ever():
    connection = ClientConnection("me")
    connection.negotiate()
    api = messages(ApiKey.API_VERSIONS)
    named = [api.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=9)]
    refusal = api.ApiVersionsResponse(error_code=35, api_keys=named)
    for number, version in enumerate([5, 4, 3, 2, 1]):
        assert sent_by(connection)[4:12] == struct.pack(">hhi", ApiKey.API_VERSIONS, version, number)
        receive(connection, encoded(ApiKey.API_VERSIONS, 0, number, refusal))
    assert sent_by(connection)[4:12] == struct.pack(">hhi", ApiKey.API_VERSIONS, 0, 5)
    with pytest.raises(NegotiationFailed):
        receive(connection, encoded(ApiKey.API_VERSIONS, 0, 5, refusal))


@pytest.mark.parametrize(("served", "wanted"), [((0, 2), (3, 4)), ((3, 4), (0, 2))])
def test_without_a_common_version_nothing_is_sent_and_the_connection_goes_on(served, wanted):
    connection = ready(Peer(served={**EVERY_VERSION, ApiKey.HEARTBEAT: served}))
    with pytest.raises(UnsupportedVersion) as refusal:
        connection.send(Api(ApiKey.HEARTBEAT, *wanted), HeartbeatRequest())
    assert (refusal.value.api_key, refusal.value.served) == (ApiKey.HEARTBEAT, served)
    assert (sent_by(connection), connection.in_flight) == (b"", 0)
    connection.send(METADATA, messages(ApiKey.METADATA).MetadataRequest())


def test_an_api_that_the_node_does_not_have_is_an_unsupported_version():
    served = {key: versions for key, versions in EVERY_VERSION.items() if key != ApiKey.HEARTBEAT}
    with pytest.raises(UnsupportedVersion) as refusal:
        ready(Peer(served=served)).send(HEARTBEAT, HeartbeatRequest())
    assert refusal.value.served is None


def test_what_the_common_version_cannot_say_is_an_unsupported_version():
    connection = ready(Peer(served={**EVERY_VERSION, ApiKey.FIND_COORDINATOR: (0, 3)}))
    request = messages(ApiKey.FIND_COORDINATOR).FindCoordinatorRequest(coordinator_keys=["a", "b"])
    with pytest.raises(UnsupportedVersion):
        connection.send(Api(ApiKey.FIND_COORDINATOR), request)
    assert (sent_by(connection), connection.in_flight) == (b"", 0)


def test_a_value_that_does_not_fit_is_an_invalid_request_and_the_connection_goes_on():
    connection = ready(Peer())
    with pytest.raises(InvalidRequest):
        connection.send(HEARTBEAT, HeartbeatRequest(generation_id=1 << 40))
    assert (sent_by(connection), connection.in_flight) == (b"", 0)
    connection.send(HEARTBEAT, HeartbeatRequest())


def test_a_node_that_refuses_to_tell_its_versions_ends_the_connection():
    connection = ClientConnection("me")
    connection.negotiate()
    response = messages(ApiKey.API_VERSIONS).ApiVersionsResponse(error_code=42)
    with pytest.raises(NegotiationFailed) as failure:
        receive(connection, encoded(ApiKey.API_VERSIONS, 4, 0, response))
    assert failure.value.code == 42
    assert connection.state is ConnectionState.CLOSED


# Requests and responses.


@settings(max_examples=40)
@given(st.data())
def test_responses_come_whole_and_in_order_whatever_the_pieces(data):
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 100, 16_300, 16_370, 40_000]), max_size=6))
    records = [bytes([number]) * size for number, size in enumerate(sizes)]
    api = messages(ApiKey.FETCH)

    def answer(_api_key, _version, request):
        if request.max_wait_ms == len(sizes):
            return api.FetchResponse()
        partition = api.PartitionData(partition_index=0, records=records[request.max_wait_ms])
        return api.FetchResponse(responses=[api.FetchableTopicResponse(topic="t", partitions=[partition])])

    peer = Peer(answer)
    connection = ready(peer, max_in_flight=10)
    sent = [connection.send(FETCH, FetchRequest(max_wait_ms=number)) for number in range(len(sizes) + 1)]
    asked, answers = sent_by(connection), b""
    while asked:
        count = data.draw(st.integers(1, len(asked)))
        answers += peer.receive(asked[:count])
        asked = asked[count:]

    received = []
    while answers:
        count = data.draw(st.integers(1, len(answers)))
        received += receive(connection, answers[:count])
        answers = answers[count:]

    assert [each.sent for each in received] == sent
    # Compared last: what has come later has not been written over what came before.
    assert [each.response.responses[0].partitions[0].records for each in received[:-1]] == records
    assert connection.in_flight == 0


def test_a_large_frame_lies_in_memory_of_its_own():
    api = messages(ApiKey.FETCH)

    def answer(_api_key, _version, _request):
        partition = api.PartitionData(partition_index=0, records=bytes(100_000))
        return api.FetchResponse(responses=[api.FetchableTopicResponse(partitions=[partition])])

    peer = Peer(answer)
    connection = ready(peer)
    connection.send(FETCH, FetchRequest())
    connection.send(FETCH, FetchRequest())
    views = [received.response.responses[0].partitions[0].records for received in exchange(connection, peer)]
    assert [type(view) for view in views] == [memoryview, memoryview]
    assert views[0].obj is not views[1].obj
    assert all(view.readonly for view in views)


def test_a_produce_without_acks_has_no_response():
    asked = []
    peer = Peer(
        lambda api_key, _version, request: asked.append(request) if api_key == ApiKey.PRODUCE else messages(api_key).response()
    )
    connection = ready(peer)
    assert not connection.send(PRODUCE_BY_NAME, ProduceRequest(None, 0, 100, [("t", [(0, b"records")])])).is_answered
    assert connection.in_flight == 0
    behind = connection.send(HEARTBEAT, HeartbeatRequest())
    assert [each.sent for each in exchange(connection, peer)] == [behind]
    assert [(topic, [(index, bytes(records)) for index, records in rows]) for topic, rows in asked[0].topics] == [
        ("t", [(0, b"records")])
    ]


def test_no_more_than_the_limit_are_in_flight():
    peer = Peer()
    connection = ready(peer, max_in_flight=2)
    connection.send(HEARTBEAT, HeartbeatRequest())
    assert connection.can_send
    connection.send(HEARTBEAT, HeartbeatRequest())
    assert not connection.can_send
    with pytest.raises(TooManyRequests):
        connection.send(HEARTBEAT, HeartbeatRequest())
    assert len(exchange(connection, peer)) == 2
    assert connection.can_send


def test_correlation_ids_begin_anew_when_they_are_used_up():
    peer = Peer()
    connection = ready(peer)
    connection._next_correlation_id = 2**31 - 1
    sent = [connection.send(HEARTBEAT, HeartbeatRequest()) for _ in range(2)]
    assert [each.correlation_id for each in sent] == [2**31 - 1, 0]
    assert len(exchange(connection, peer)) == 2


# What ends a connection.


def in_flight(count=1, **limits):
    """A connection with requests in flight, and their correlation ids."""
    connection = ready(Peer(), **limits)
    sent = [connection.send(HEARTBEAT, HeartbeatRequest()) for _ in range(count)]
    connection.data_to_send()
    return connection, [each.correlation_id for each in sent]


def heartbeat(correlation_id):
    return encoded(ApiKey.HEARTBEAT, 4, correlation_id, messages(ApiKey.HEARTBEAT).HeartbeatResponse())


def ends_with(error, connection, data):
    with pytest.raises(error):
        receive(connection, data)
    assert connection.state is ConnectionState.CLOSED
    assert connection.next_response() is None
    with pytest.raises(Disconnected):
        connection.send(HEARTBEAT, HeartbeatRequest())


def test_a_response_to_nothing_ends_the_connection():
    connection, _ = in_flight(0)
    ends_with(UnexpectedResponse, connection, heartbeat(1))


def test_an_unknown_correlation_id_ends_the_connection():
    connection, [correlation_id] = in_flight()
    ends_with(UnexpectedResponse, connection, heartbeat(correlation_id + 1))


def test_a_response_out_of_order_ends_the_connection():
    connection, [_, second] = in_flight(2)
    ends_with(UnexpectedResponse, connection, heartbeat(second))


@pytest.mark.parametrize("size", [-1, 0, 3, 1001, 2**31 - 1])
def test_a_frame_that_is_too_large_or_too_small_ends_the_connection(size):
    # Room for the versions is left: a limit under which nothing could be negotiated tests nothing.
    connection, _ = in_flight(max_response_bytes=1000)
    ends_with(InvalidFrame, connection, size.to_bytes(4, "big", signed=True))


def test_a_frame_at_the_limit_is_read():
    connection, [correlation_id] = in_flight(max_response_bytes=1000)
    frame = (1000).to_bytes(4, "big") + heartbeat(correlation_id)[4:].ljust(1000, b"\0")
    assert len(receive(connection, frame)) == 1


def test_a_response_that_cannot_be_read_ends_the_connection():
    connection, [correlation_id] = in_flight()
    frame = heartbeat(correlation_id)[:-1]
    ends_with(UnreadableResponse, connection, (len(frame) - 4).to_bytes(4, "big") + frame[4:])


def test_the_responses_before_a_broken_one_are_had():
    connection, [first, second] = in_flight(2)
    data = heartbeat(first) + heartbeat(second + 7)
    room = connection.writable()
    room[: len(data)] = data
    connection.filled(len(data))
    assert connection.next_response().sent.correlation_id == first
    with pytest.raises(UnexpectedResponse):
        connection.next_response()


def test_closing_names_the_requests_that_get_no_response():
    connection, correlation_ids = in_flight(3)
    receive(connection, heartbeat(correlation_ids[0]))
    assert [each.correlation_id for each in connection.close()] == correlation_ids[1:]
    assert connection.close() == []
    assert connection.in_flight == 0


def test_nothing_is_sent_before_the_versions_are_known():
    connection = ClientConnection("me")
    with pytest.raises(IllegalTransition):
        connection.send(HEARTBEAT, HeartbeatRequest())
    connection.negotiate()
    with pytest.raises(IllegalTransition):
        connection.send(HEARTBEAT, HeartbeatRequest())


def test_a_connection_negotiates_once_and_never_opens_again():
    assert TRANSITIONS.keys() == set(ConnectionState)
    assert not TRANSITIONS[ConnectionState.CLOSED]
    connection = ready(Peer())
    with pytest.raises(IllegalTransition):
        connection.negotiate()
    connection.close()
    with pytest.raises(IllegalTransition):
        connection.negotiate()
