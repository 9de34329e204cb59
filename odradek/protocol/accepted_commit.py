"""The response to an OffsetCommit without errors, shared by many requests."""

from odradek.protocol.message_types.offset_commit import OffsetCommitResponse


class AcceptedCommit(OffsetCommitResponse):
    """An OffsetCommitResponse without errors that is kept and returned repeatedly. The encoder caches its bytes.

    This module is not compiled: mypyc cannot compile a subclass of a named tuple.
    """

    __slots__ = ()
