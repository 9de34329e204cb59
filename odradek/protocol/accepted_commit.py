"""The response to an OffsetCommit of which everything was taken, given again and again."""

from odradek.protocol.message_types.offset_commit import OffsetCommitResponse


class AcceptedCommit(OffsetCommitResponse):
    """An OffsetCommitResponse without an error that its maker keeps and gives to many: the encoder keeps the bytes, too.

    A module that is not compiled: mypyc makes no class of a named tuple's kind.
    """

    __slots__ = ()
