"""Authorization as Kafka's documentation words it: every binding is looked at, one after the other."""

from odradek.common.acls import ANYONE, WILDCARD, AclBinding, AclOperation, AclPermission, AclResourceType, PatternType

IMPLIED = {AclOperation.DESCRIBE: "READ WRITE DELETE ALTER", AclOperation.DESCRIBE_CONFIGS: "ALTER_CONFIGS"}


def names(binding, resource_type, name):
    if binding.resource_type != resource_type:
        return False
    if binding.pattern_type == PatternType.LITERAL:
        return binding.resource_name in (WILDCARD, name)
    return name.startswith(binding.resource_name)


def is_for(binding, principal, host):
    return binding.principal in (principal, ANYONE) and binding.host in (host, WILDCARD)


def covers(binding, operation):
    if binding.operation in (operation, AclOperation.ALL):
        return True
    return binding.permission == AclPermission.ALLOW and binding.operation.name in IMPLIED.get(operation, "").split()


def authorize(bindings, super_users, allows_without_acls, principal, host, operation, resource_type, name):
    if principal in super_users:
        return True
    of_resource = [each for each in bindings if names(each, resource_type, name)]
    if not of_resource:
        return allows_without_acls
    told = {each.permission for each in of_resource if is_for(each, principal, host) and covers(each, operation)}
    return told == {AclPermission.ALLOW}


def authorize_by_type(bindings, super_users, allows_without_acls, principal, host, operation, resource_type):
    """Whether one of the allowed patterns is not wholly denied. ``hardcode`` is a name that Kafka tries first."""
    if authorize(bindings, super_users, allows_without_acls, principal, host, operation, resource_type, "hardcode"):
        return True
    exact = [
        each
        for each in bindings
        if each.resource_type == resource_type
        and is_for(each, principal, host)
        and each.operation in (operation, AclOperation.ALL)
    ]
    denied = [each for each in exact if each.permission == AclPermission.DENY]
    allowed = [each for each in exact if each.permission == AclPermission.ALLOW]

    def is_denied_whole(binding):
        return any(
            other.resource_name == binding.resource_name and other.pattern_type == binding.pattern_type == PatternType.LITERAL
            for other in denied
        ) or any(
            other.pattern_type == PatternType.PREFIXED and binding.resource_name.startswith(other.resource_name)
            for other in denied
        )

    if any(is_everything(each) for each in denied):
        return False
    return any(is_everything(each) or not is_denied_whole(each) for each in allowed)


def is_everything(binding):
    return binding.pattern_type == PatternType.LITERAL and binding.resource_name == WILDCARD


def binding(text):
    """``allow User:a READ TOPIC orders*`` from any host; a name that ends with ``*`` is a prefix, ``*`` alone the wildcard."""
    permission, principal, operation, resource_type, name, *host = text.split()
    is_prefix = len(name) > 1 and name.endswith("*")
    return AclBinding(
        AclResourceType[resource_type],
        name[:-1] if is_prefix else name,
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        principal,
        host[0] if host else WILDCARD,
        AclOperation[operation],
        AclPermission[permission.upper()],
    )
