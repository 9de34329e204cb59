"""The ``odradek`` command."""
