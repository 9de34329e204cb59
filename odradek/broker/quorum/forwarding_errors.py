"""Responses to forwarded requests that never reached a controller: the error at the top or, where there is none, by item."""

from collections.abc import Callable
from typing import Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types import (
    alter_client_quotas,
    alter_configs,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    incremental_alter_configs,
)
from odradek.protocol.messages import messages


def error_response(api_key: ApiKey, request: object, error: KafkaError) -> object:
    """The response to all of ``request`` with the code and the reason of ``error``."""
    by_item = _BY_ITEM.get(api_key)
    if by_item is not None:
        return by_item(request, error)
    response = messages(api_key).response
    has_message = "error_message" in response._fields
    return response(error_code=error.code, **({"error_message": error.reason} if has_message else {}))


def _create_topics(request: create_topics.CreateTopicsRequest, error: KafkaError) -> create_topics.CreateTopicsResponse:
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.reason)
            for topic in request.topics
        ]
    )


def _create_acls(request: create_acls.CreateAclsRequest, error: KafkaError) -> create_acls.CreateAclsResponse:
    result = create_acls.AclCreationResult(error.code, error.reason)
    return create_acls.CreateAclsResponse(results=[result] * len(request.creations))


def _delete_acls(request: delete_acls.DeleteAclsRequest, error: KafkaError) -> delete_acls.DeleteAclsResponse:
    result = delete_acls.DeleteAclsFilterResult(error.code, error.reason)
    return delete_acls.DeleteAclsResponse(filter_results=[result] * len(request.filters))


def _delete_topics(request: delete_topics.DeleteTopicsRequest, error: KafkaError) -> delete_topics.DeleteTopicsResponse:
    return delete_topics.DeleteTopicsResponse(
        responses=[
            delete_topics.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.reason
            )
            for topic in request.topics
        ]
    )


def _create_partitions(
    request: create_partitions.CreatePartitionsRequest, error: KafkaError
) -> create_partitions.CreatePartitionsResponse:
    return create_partitions.CreatePartitionsResponse(
        results=[
            create_partitions.CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.reason)
            for topic in request.topics
        ]
    )


def _alter_configs(request: alter_configs.AlterConfigsRequest, error: KafkaError) -> alter_configs.AlterConfigsResponse:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.reason,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: incremental_alter_configs.IncrementalAlterConfigsRequest, error: KafkaError
) -> incremental_alter_configs.IncrementalAlterConfigsResponse:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.reason,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def alter_client_quotas_error(
    request: alter_client_quotas.AlterClientQuotasRequest, error: KafkaError
) -> alter_client_quotas.AlterClientQuotasResponse:
    """Each entity as it was sent."""
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.EntryData(
                error.code, error.reason, [alter_client_quotas.EntityData(*part) for part in entry.entity]
            )
            for entry in request.entries
        ]
    )


def alter_user_scram_credentials_error(
    request: alter_user_scram_credentials.AlterUserScramCredentialsRequest, error: KafkaError
) -> alter_user_scram_credentials.AlterUserScramCredentialsResponse:
    """Each user once, by name."""
    names = sorted({*(each.name for each in request.deletions), *(each.name for each in request.upsertions)})
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=error.code, error_message=error.reason
            )
            for name in names
        ]
    )


_BY_ITEM: Final[dict[ApiKey, Callable[[Any, KafkaError], Any]]] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas_error,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials_error,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
}
