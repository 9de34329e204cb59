"""Brokers register, and are unregistered: the records, the epochs, and what is refused."""

from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.broker_registration import Feature
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.message_types.unregister_controller import UnregisterControllerRequest
from odradek.protocol.metadata_records import FeatureLevelRecord
from odradek.protocol.metadata_records.nodes import (
    NodeEndpoint,
    NodeFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.controller.cluster.clusters import CONTROLLER_ID, FEATURES, SESSION_MS, directory
from tests.controller.metadata.doubles import done

INCARNATION = UUID(int=77)


def unregister(cluster, broker_id):
    return done(cluster.controller.unregister_broker(UnregisterBrokerRequest(broker_id)))


def test_a_brokers_epoch_is_the_offset_of_its_registration(cluster):
    offset = cluster.end_offset
    [record] = cluster.new_records(lambda: cluster.register(1, incarnation_id=INCARNATION, rack="a"))
    assert record == RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=INCARNATION,
        broker_epoch=offset,
        end_points=(NodeEndpoint(name="PLAINTEXT", host="localhost", port=9001, security_protocol=0),),
        features=tuple(NodeFeature(**each._asdict()) for each in FEATURES),
        rack="a",
        fenced=True,
        log_dirs=(directory(1),),
    )
    assert cluster.register(2) == offset + 1


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(1), directory(1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [UUID(int=1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [None]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(2)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": FEATURES[1:]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": FEATURES[:1]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [Feature("metadata.version", 7, 29), *FEATURES[1:]]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [*FEATURES, Feature("tomorrow.version", 1, 2)]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_registration_that_does_not_fit_is_refused_and_leaves_nothing(cluster, what, error):
    cluster.register(2)
    refused = []
    assert cluster.new_records(lambda: refused.append(cluster.ask_to_register(1, **what))) == []
    assert (refused[0].error_code, refused[0].broker_epoch) == (error, -1)


def test_an_id_belongs_to_its_incarnation_as_long_as_that_is_heard_of(cluster):
    cluster.start(1)
    cluster.clock.advance(SESSION_MS)
    assert cluster.ask_to_register(1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.clock.advance(1)
    assert cluster.ask_to_register(1).error_code == ErrorCode.NONE


def test_the_same_incarnation_keeps_its_epoch_and_its_state(cluster):
    cluster.start(1, incarnation_id=INCARNATION)
    epoch = cluster.epoch(1)
    records = cluster.new_records(lambda: cluster.register(1, incarnation_id=INCARNATION, log_dirs=[directory(1, 5)]))
    assert [(each.broker_epoch, each.fenced, each.log_dirs) for each in records] == [(epoch, False, (directory(1, 5),))]


def lose(cluster, broker_id):
    """What a broker leads goes to nobody else, and its session ends."""
    cluster.expire(broker_id)


def test_what_an_incarnation_had_not_synced_may_be_lost_so_the_next_is_not_eligible(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2), min_insync_replicas="2")
    lose(cluster, 1)
    assert cluster.state() == (2, 1, (2,), (1,), 1)
    topic_id = cluster.partition().topic_id
    change, registration = cluster.new_records(lambda: cluster.register(1))
    assert change == PartitionChangeRecord(partition_id=0, topic_id=topic_id, eligible_leader_replicas=())
    assert registration.broker_epoch == cluster.end_offset - 2


def test_an_incarnation_that_was_shut_down_cleanly_stays_eligible(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2), min_insync_replicas="2")
    epoch = cluster.epoch(1)
    lose(cluster, 1)
    cluster.register(1, previous_broker_epoch=epoch)
    assert cluster.state() == (2, 1, (2,), (1,), 1)


def test_before_version_3_no_shutdown_is_known_to_be_clean(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2), min_insync_replicas="2")
    epoch = cluster.epoch(1)
    lose(cluster, 1)
    assert cluster.ask_to_register(1, version=2, previous_broker_epoch=epoch).error_code == ErrorCode.NONE
    assert cluster.state() == (2, 1, (2,), (), 2)


def test_a_broker_that_is_unregistered_leads_nothing_and_is_gone(cluster):
    cluster.start(1, 2)
    topic = cluster.create("t", (1, 2))
    epoch = cluster.epoch(1)
    records = cluster.new_records(lambda: unregister(cluster, 1))
    assert records == [
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, isr=(2,), leader=2),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch),
    ]
    assert list(cluster.image.kept.brokers) == [2]
    assert unregister(cluster, 1).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_controller_that_is_gone_is_unregistered_and_the_active_one_is_not(cluster):
    def ask(controller_id):
        return done(cluster.controller.unregister_controller(UnregisterControllerRequest(controller_id))).error_code

    done(cluster.controller.write([RegisterControllerRecord(controller_id=7)]))
    assert ask(CONTROLLER_ID) == ErrorCode.INVALID_REQUEST
    assert cluster.new_records(lambda: ask(7)) == [UnregisterControllerRecord(controller_id=7)]
    assert (ask(7), list(cluster.image.kept.records())) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, [])
    done(cluster.controller.write([FeatureLevelRecord(name="metadata.version", feature_level=32)]))
    assert ask(7) == ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_has_leave_to_stop_may_start_again_at_once(cluster):
    cluster.start(1, 2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    before = cluster.epoch(1)
    assert cluster.register(1, incarnation_id=INCARNATION) > before
