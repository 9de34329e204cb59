"""Requests for the tests of the ACL APIs, in the words of ``tests.broker.security.authorizer.naive.binding``."""

from odradek.common.acls import AclOperation, AclPermission, AclResourceType, PatternType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_acls import AclCreation
from odradek.protocol.message_types.delete_acls import DeleteAclsFilter
from tests.broker.api.bed import ask, make_broker
from tests.broker.security.authorizer.naive import binding

ANY = 1


def secured_broker(*topics, **overrides):
    """The client of these tests, whose principal is User:ANONYMOUS, is a super user."""
    defaults = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    return make_broker(*topics, **defaults | overrides)


def creation(text):
    each = binding(text)
    return AclCreation(
        int(each.resource_type),
        each.resource_name,
        int(each.pattern_type),
        each.principal,
        each.host,
        int(each.operation),
        int(each.permission),
    )


def create(broker, *texts):
    answer = ask(broker, ApiKey.CREATE_ACLS, creations=[creation(text) for text in texts])
    return [(result.error_code, result.error_message) for result in answer.results]


def wanted(resource_type=ANY, name=None, pattern_type=ANY, principal=None, host=None, operation=ANY, permission=ANY):
    return DeleteAclsFilter(int(resource_type), name, int(pattern_type), principal, host, int(operation), int(permission))


def described(broker, **filters):
    """The access control entries that a filter selects, as words."""
    asked = wanted(**filters)
    answer = ask(broker, ApiKey.DESCRIBE_ACLS, **asked._asdict())
    assert answer.error_code == 0
    return {
        in_words(resource.resource_type, resource.resource_name, resource.pattern_type, *acl)
        for resource in answer.resources
        for acl in resource.acls
    }


def in_words(resource_type, name, pattern_type, principal, host, operation, permission):
    star = "*" if pattern_type == PatternType.PREFIXED else ""
    words = [AclPermission(permission).name.lower(), principal, AclOperation(operation).name]
    words += [AclResourceType(resource_type).name, name + star]
    return " ".join(words + ([] if host == "*" else [host]))
