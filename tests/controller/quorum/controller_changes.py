"""A change of each kind that clients and brokers ask a controller for."""

from uuid import uuid4

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    broker_heartbeat,
    controller_registration,
    create_acls,
    create_partitions,
    delete_acls,
    unregister_broker,
    unregister_controller,
    update_features,
)
from tests.controller.quorum.real_quorum import FEATURES

TOPIC_RESOURCE = 2


def succeeded(*parts):
    """Whether none of a response's ``parts`` has an error."""
    return lambda response: not any(each.error_code for name in parts for each in getattr(response, name))


def accepted(response):
    return not response.error_code


async def make_all(quorum, new_name):
    """Each kind of change, on brokers and topics of its own."""
    leader, follower, leaving = 21, 22, 23
    epochs = {broker_id: await quorum.register(broker_id) for broker_id in (leader, follower, leaving)}
    kept, grown, gone = new_name(), new_name(), new_name()
    created = await quorum.create_topics([kept], [[leader, follower], [leaving, follower]])
    topic_id = created.topics[0].topic_id
    await quorum.create_topics([grown, gone])
    await quorum.delete_topics([gone])
    await _grow(quorum, grown)
    await quorum.set_config(TOPIC_RESOURCE, kept, "retention.ms", "1234")
    await quorum.set_config(TOPIC_RESOURCE, kept, "cleanup.policy", "compact")
    await quorum.set_config(TOPIC_RESOURCE, kept, "cleanup.policy", None)
    await _alter_quotas(quorum)
    await _alter_credentials(quorum)
    await _alter_rights(quorum)
    await _alter_features(quorum)
    ids = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=leader, broker_epoch=epochs[leader])
    await quorum.ask_active(ApiKey.ALLOCATE_PRODUCER_IDS, ids, accepted)
    await _alter_isr(quorum, topic_id, [(leader, epochs[leader]), (follower, epochs[follower])])
    await _reassign(quorum, kept, leader)
    fenced = broker_heartbeat.BrokerHeartbeatRequest(
        broker_id=follower, broker_epoch=epochs[follower], current_metadata_offset=epochs[follower], want_fence=True
    )
    await quorum.ask_active(ApiKey.BROKER_HEARTBEAT, fenced, lambda each: not each.error_code and each.is_fenced)
    await quorum.ask_active(ApiKey.UNREGISTER_BROKER, unregister_broker.UnregisterBrokerRequest(leaving), accepted)
    await _leave_as_controller(quorum, 24)
    # Eligible leaders were chosen by the least number of replicas in sync.
    await quorum.set_config(TOPIC_RESOURCE, kept, "min.insync.replicas", "1")


async def _leave_as_controller(quorum, controller_id):
    """A controller that observes the quorum registers, and is gone for good."""
    registration = controller_registration.ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=uuid4(),
        listeners=[controller_registration.Listener(name="CONTROLLER", host="127.0.0.1", port=1)],
        features=[controller_registration.Feature(*feature) for feature in FEATURES],
    )
    await quorum.ask_active(ApiKey.CONTROLLER_REGISTRATION, registration, accepted)
    gone = unregister_controller.UnregisterControllerRequest(controller_id)
    await quorum.ask_active(ApiKey.UNREGISTER_CONTROLLER, gone, accepted)


async def _grow(quorum, name):
    topic = create_partitions.CreatePartitionsTopic(name=name, count=4, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
    await quorum.ask_active(ApiKey.CREATE_PARTITIONS, request, succeeded("results"))


async def _alter_quotas(quorum):
    entity = [alter_client_quotas.RequestEntityData("user", None), alter_client_quotas.RequestEntityData("client-id", "c")]
    for changes in (
        [("producer_byte_rate", 5.0, False), ("consumer_byte_rate", 6.0, False)],
        [("producer_byte_rate", 0.0, True)],
    ):
        ops = [alter_client_quotas.OpData(*change) for change in changes]
        entry = alter_client_quotas.RequestEntryData(entity=entity, ops=ops)
        request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
        await quorum.ask_active(ApiKey.ALTER_CLIENT_QUOTAS, request, succeeded("entries"))


async def _alter_credentials(quorum):
    made = [
        alter_user_scram_credentials.ScramCredentialUpsertion(
            name=name, mechanism=1, iterations=4096, salt=b"salt", salted_password=bytes(32)
        )
        for name in ("stays", "goes")
    ]
    gone = [alter_user_scram_credentials.ScramCredentialDeletion(name="goes", mechanism=1)]
    for change in ({"upsertions": made}, {"deletions": gone}):
        request = alter_user_scram_credentials.AlterUserScramCredentialsRequest(**change)
        await quorum.ask_active(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request, succeeded("results"))


async def _alter_rights(quorum):
    rights = [
        create_acls.AclCreation(resource_type=2, resource_name=name, principal="User:a", host="*", operation=3, permission_type=3)
        for name in ("stays", "goes")
    ]
    await quorum.ask_active(ApiKey.CREATE_ACLS, create_acls.CreateAclsRequest(creations=rights), succeeded("results"))
    gone = delete_acls.DeleteAclsFilter(resource_type_filter=2, resource_name_filter="goes", operation=1, permission_type=1)
    await quorum.ask_active(ApiKey.DELETE_ACLS, delete_acls.DeleteAclsRequest(filters=[gone]), succeeded("filter_results"))


async def _alter_features(quorum):
    levels = {"group.version": 1, "share.version": 1, "eligible.leader.replicas.version": 1}
    keys = [update_features.FeatureUpdateKey(*level) for level in levels.items()]
    request = update_features.UpdateFeaturesRequest(feature_updates=keys)
    await quorum.ask_active(ApiKey.UPDATE_FEATURES, request, accepted)


async def _alter_isr(quorum, topic_id, epochs):
    """A replica leaves those in sync, which makes it eligible to lead; it comes back, and leaves again."""
    (leader, epoch), follower = epochs
    for partition_epoch, members in enumerate(([(leader, epoch)], [(leader, epoch), follower], [(leader, epoch)])):
        partition = alter_partition.RequestPartitionData(
            partition_index=0,
            leader_epoch=0,
            new_isr_with_epochs=[alter_partition.BrokerState(*member) for member in members],
            partition_epoch=partition_epoch,
        )
        topic = alter_partition.RequestTopicData(topic_id=topic_id, partitions=[partition])
        request = alter_partition.AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=[topic])
        await quorum.ask_active(ApiKey.ALTER_PARTITION, request, lambda each: accepted(each) and not _errors(each.topics))


def _errors(topics):
    return [partition.error_code for topic in topics for partition in topic.partitions if partition.error_code]


async def _reassign(quorum, name, broker_id):
    partition = alter_partition_reassignments.ReassignablePartition(partition_index=1, replicas=[broker_id])
    topic = alter_partition_reassignments.ReassignableTopic(name=name, partitions=[partition])
    request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=10_000)
    await quorum.ask_active(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, lambda each: accepted(each) and not _errors(each.responses)
    )
