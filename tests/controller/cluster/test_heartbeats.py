"""Heartbeats: when a broker is caught up, unfenced, fenced, or may stop; and what happens when they do not come."""

from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatResponse
from odradek.protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.controller.cluster.clusters import SESSION_MS, Cluster, directory


def is_fenced(cluster, broker_id):
    return cluster.image.kept.brokers[broker_id].fenced


def test_a_broker_is_unfenced_when_it_has_followed_to_its_registration(cluster):
    epoch = cluster.register(1)
    behind = cluster.heartbeat(1, current_metadata_offset=epoch - 1)
    assert behind == BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True)
    ready = cluster.heartbeat(1, current_metadata_offset=epoch, want_fence=True)
    assert ready == BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True)
    records = cluster.new_records(lambda: cluster.heartbeat(1, current_metadata_offset=epoch))
    assert records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)]
    assert cluster.heartbeat(1) == BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)


def test_a_heartbeat_of_another_incarnation_or_of_nobody_is_refused(cluster):
    cluster.start(1)
    for broker_id, epoch in ((1, cluster.epoch(1) + 1), (9, 0)):
        refused = cluster.heartbeat(broker_id, broker_epoch=epoch)
        assert (refused.error_code, refused.is_fenced) == (ErrorCode.STALE_BROKER_EPOCH, True)


def test_a_broker_that_is_not_heard_of_is_fenced_and_others_lead(cluster):
    cluster.start(1, 2)
    topic = cluster.create("t", (1, 2), (2, 1))
    epoch = cluster.epoch(1)
    records = cluster.new_records(lambda: cluster.expire(1))
    assert records == [
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, isr=(2,), leader=2),
        PartitionChangeRecord(partition_id=1, topic_id=topic.topic_id, isr=(2,)),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1),
    ]


def test_a_broker_is_fenced_within_a_quarter_of_its_time_after_that_is_over(cluster):
    cluster.start(1)
    cluster.clock.advance(SESSION_MS)
    assert not is_fenced(cluster, 1)
    cluster.clock.advance(SESSION_MS / 4)
    assert is_fenced(cluster, 1)


def test_brokers_whose_time_is_over_are_fenced_one_after_the_other(cluster):
    cluster.start(1, 2, 3)
    topic = cluster.create("t", (1, 2, 3))
    batches = len(cluster.log.batches)
    cluster.clock.advance(2 * SESSION_MS)
    assert [is_fenced(cluster, each) for each in (1, 2, 3)] == [True] * 3
    assert len(cluster.log.batches) == batches + 3
    assert cluster.log.last_records[0] == PartitionChangeRecord(
        partition_id=0, topic_id=topic.topic_id, isr=(), leader=-1, eligible_leader_replicas=(3,), last_known_elr=(3,)
    )


def test_a_controller_that_starts_anew_gives_each_broker_a_session(cluster):
    cluster.start(1, 2)
    cluster.expire(2)
    again = Cluster(log=cluster.log)
    again.clock.advance(SESSION_MS)
    again.heartbeat(1)
    again.clock.advance(SESSION_MS)
    assert not is_fenced(again, 1)
    assert is_fenced(again, 2)
    again.unfence(2)
    again.clock.advance(2 * SESSION_MS)
    assert is_fenced(again, 1)


def test_a_broker_is_fenced_as_soon_as_its_session_is_over(cluster):
    cluster.start(1)
    cluster.clock.advance(SESSION_MS / 10)
    cluster.heartbeat(1)
    cluster.clock.advance(SESSION_MS)
    assert not is_fenced(cluster, 1)
    cluster.clock.advance(10)
    assert is_fenced(cluster, 1)


def test_a_controller_that_is_closed_watches_nobody(cluster):
    cluster.start(1)
    cluster.controller.close()
    cluster.clock.advance(10 * SESSION_MS)
    assert not is_fenced(cluster, 1)


def test_a_leader_that_wants_to_stop_gives_up_its_partitions_first(cluster):
    cluster.start(1, 2)
    topic = cluster.create("t", (1, 2))
    epoch = cluster.epoch(1)
    answers = []
    records = cluster.new_records(lambda: answers.append(cluster.heartbeat(1, want_shut_down=True)))
    assert records == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, isr=(2,), leader=2),
    ]
    assert answers == [BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)]


def test_it_may_stop_when_all_others_know_who_leads_instead(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2))
    cluster.heartbeat(1, want_shut_down=True)
    decided = cluster.end_offset - 1
    cluster.heartbeat(2, current_metadata_offset=decided - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, current_metadata_offset=decided)
    epoch = cluster.epoch(1)
    answers = []
    records = cluster.new_records(lambda: answers.append(cluster.heartbeat(1, want_shut_down=True)))
    assert answers == [BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)]
    assert records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)]


def test_a_broker_that_leads_nothing_may_stop_at_once(cluster):
    cluster.start(1, 2)
    cluster.create("t", (2, 1))
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.state() == (2, 0, (2,), (), 1)


def test_a_fenced_broker_may_stop_at_once(cluster):
    cluster.register(1)
    assert cluster.heartbeat(1, want_shut_down=True) == BrokerHeartbeatResponse(
        is_caught_up=True, is_fenced=True, should_shut_down=True
    )


def test_one_that_nobody_can_follow_waits_with_stopping_no_longer_than_it_leads(cluster):
    cluster.start(1)
    cluster.create("t", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.state() == (-1, 1, (), (1,), 1)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_nothing_new_is_placed_on_a_broker_that_is_about_to_stop(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2))
    cluster.heartbeat(1, want_shut_down=True)
    for number in range(5):
        [result] = cluster.controller.create_topics([NewTopic(f"new-{number}", 1, 1)]).response
        assert result.error is None
        assert cluster.partition(f"new-{number}").replicas == (2,)


def test_what_is_in_a_directory_that_has_failed_is_led_by_others(cluster):
    cluster.register(1, log_dirs=[directory(1, 1), directory(1, 2)])
    cluster.register(2)
    cluster.unfence(1, 2)
    topic = cluster.create("t", (1, 2), (1, 2))
    cluster.place(1, directory(1, 1), "t", 0)
    cluster.place(1, directory(1, 2), "t", 1)
    epoch = cluster.epoch(1)
    records = cluster.new_records(lambda: cluster.heartbeat(1, offline_log_dirs=[directory(1, 1)]))
    assert records == [
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, isr=(2,), leader=2),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, log_dirs=(directory(1, 2),)),
    ]
    assert cluster.new_records(lambda: cluster.heartbeat(1, offline_log_dirs=[directory(1, 1)])) == []


def test_a_broker_all_of_whose_directories_are_cordoned_gets_no_replicas(cluster):
    cluster.start(1, 2)
    epoch = cluster.epoch(1)
    records = cluster.new_records(lambda: cluster.heartbeat(1, cordoned_log_dirs=[directory(1)]))
    assert records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, cordoned_log_dirs=(directory(1),))]
    assert cluster.new_records(lambda: cluster.heartbeat(1, cordoned_log_dirs=[directory(1)])) == []
    for number in range(5):
        assert cluster.controller.create_topics([NewTopic(f"new-{number}", 1, 1)]).response[0].error is None
        assert cluster.partition(f"new-{number}").replicas == (2,)
