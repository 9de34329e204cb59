"""A large operation is cut where nothing is torn apart."""

from uuid import UUID

from odradek.controller.metadata.decisions import parts
from odradek.protocol.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.metadata_records.security import (
    ClientQuotaRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
)
from tests.cases import each_case


def topic(number, partitions=2, configs=2):
    topic_id = UUID(int=number)
    return [
        TopicRecord(name=f"t{number}", topic_id=topic_id),
        *config(f"t{number}", configs),
        *(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(UUID(int=500),),
            )
            for index in range(partitions)
        ),
    ]


def config(name, count):
    return [ConfigRecord(resource_type=2, resource_name=name, name=f"c{number}", value="1") for number in range(count)]


def quotas(user, count):
    entity = (QuotaEntity(entity_type="user", entity_name=user),)
    return [ClientQuotaRecord(entity=entity, key=f"k{number}", value=1.0, remove=False) for number in range(count)]


@each_case("least", [1, 3, 5, 6, 100])
@each_case(
    "whole",
    [
        [topic(number) for number in range(1, 20)],
        [topic(number, partitions=number, configs=0) for number in range(1, 20)],
        [config(f"t{number}", 3) for number in range(20)],
        [[RemoveTopicRecord(topic_id=UUID(int=number))] for number in range(20)],
        [[RemoveAccessControlEntryRecord(id=UUID(int=number))] for number in range(20)],
        [[RemoveUserScramCredentialRecord(name=f"u{number}", mechanism=1)] for number in range(20)],
        [quotas(f"u{number}", 2) for number in range(20)],
    ],
    ids=["topics", "topics without configs", "configs", "removals", "ACLs", "SCRAM credentials", "quotas"],
)
def test_no_part_has_a_piece_of_a_topic_or_of_the_configs_or_quotas_of_one(whole, least):
    records = [record for together in whole for record in together]
    found = list(parts(records, least))
    assert [record for part in found for record in part] == records
    assert all(len(part) >= least for part in found[:-1])
    for part in found:
        for together in whole:
            assert sum(record in part for record in together) in (0, len(together))
    assert len(found) > 1 or least == 100


def test_partitions_alone_are_one_part():
    records = topic(1, partitions=50, configs=0)[1:]
    assert list(parts(records, 10)) == [records]
