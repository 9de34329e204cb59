"""Reporting of disk errors: one error may mean that a whole data directory has failed."""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable


class DiskErrors:
    """The disk errors of one data directory's logs. ``on_error`` is called with each; the LogManager sets it."""

    __slots__ = ("on_error",)

    def __init__(self) -> None:
        self.on_error: Callable[[OSError], object] | None = None

    def report(self, error: OSError) -> KafkaError:
        """Report ``error``, and return the KAFKA_STORAGE_ERROR with which the client is answered."""
        if self.on_error is not None:
            self.on_error(error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
