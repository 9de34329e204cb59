"""What an append returns."""


class AppendInfo:
    """Where an appended batch lies. ``log_append_time_ms`` is -1 for CreateTime; a ``duplicate`` is not written again."""

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, first_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int, duplicate: bool
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
