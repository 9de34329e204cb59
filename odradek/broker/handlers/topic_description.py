"""What several descriptions say alike: what a client may do with topics, groups and the cluster."""

# Authorised operations are a bit per AclOperation code (KIP-430); without an authoriser everything that applies is allowed.
NO_OPERATIONS = -(2**31)
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(_CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE)
