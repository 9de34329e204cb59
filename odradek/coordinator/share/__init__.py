"""The share coordinator: the state of share partitions (KIP-932), kept on ``__share_group_state``."""
