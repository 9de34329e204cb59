"""What a runtime counts, for those who watch."""

from dataclasses import dataclass


@dataclass(slots=True)
class RuntimeCounters:
    """Numbers that only grow, and the last and the longest of the times measured, in ms.

    ``skipped_records`` are those of key versions not known here.
    """

    appends: int = 0
    appended_records: int = 0
    append_failures: int = 0
    append_ms: float = 0.0
    longest_append_ms: float = 0.0
    loads: int = 0
    failed_loads: int = 0
    loaded_records: int = 0
    skipped_records: int = 0
    loaded_bytes: int = 0
    load_ms: float = 0.0
    last_load_ms: float = 0.0
    longest_load_ms: float = 0.0
    unloads: int = 0

    def count_append(self, records: int, duration_ms: float) -> None:
        """A batch was appended."""
        self.appends += 1
        self.appended_records += records
        self.append_ms += duration_ms
        self.longest_append_ms = max(self.longest_append_ms, duration_ms)

    def count_load(self, records: int, skipped_records: int, size_bytes: int, duration_ms: float) -> None:
        """A shard was loaded."""
        self.loads += 1
        self.loaded_records += records
        self.skipped_records += skipped_records
        self.loaded_bytes += size_bytes
        self.load_ms += duration_ms
        self.last_load_ms = duration_ms
        self.longest_load_ms = max(self.longest_load_ms, duration_ms)
