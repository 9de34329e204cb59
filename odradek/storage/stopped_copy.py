"""A copy of a data directory that is in use, made such that a start finds it as after a clean stop.

The logs write out what they hold in memory; then somebody copies the files, within the same turn of the loop; then the copy gets
the checkpoints and the marker that a clean stop writes. Nothing is synced: the copy is as durable as whoever makes it wants.
"""

from odradek.storage import checkpoints
from odradek.storage.data_directory import METADATA_LOG, DataDirectory, clean_marker
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import Log
from odradek.storage.log_manager import LogManager
from odradek.storage.offset_checkpoints import aborted_of


def write_out(log_manager: LogManager) -> None:
    """Before the copy: write index entries and producers of every log that is not at its end. Raises KafkaError, OSError."""
    for log in log_manager.logs.values():
        if not _is_broken(log):
            log.write_out()


def mark_stopped(log_manager: LogManager, directory: DataDirectory, file_system: FileSystem, path: str) -> None:
    """In the copy of ``directory`` at ``path``: its checkpoints, and the marker, unless a start must recover logs.

    Raises OSError.
    """
    logs = {key: log for key, log in log_manager.logs.items() if log_manager.home_of(log) is directory}
    offline = {key: None for key, home in log_manager.offline_homes.items() if home is directory}
    start_offsets = {key: log.log_start_offset for key, log in logs.items() if log.log_start_offset}
    end_offsets = {key: log.log_end_offset for key, log in logs.items()}
    cleaned_offsets = {key: log.cleaned_offset for key, log in logs.items() if log.cleaned_offset is not None}
    synced = log_manager.checkpoints.metadata_synced
    if synced is not None and directory is log_manager.directories.metadata:
        end_offsets[METADATA_LOG] = synced()
    for name, offsets in (
        (checkpoints.LOG_START_FILE, start_offsets),
        (checkpoints.RECOVERY_POINT_FILE, end_offsets),
        (checkpoints.CLEANER_OFFSET_FILE, cleaned_offsets),
    ):
        held = directory.held_of(name, offline)
        if held or offsets:
            lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in {**held, **offsets}.items()]
            checkpoints.write_table(file_system, f"{path}/{name}", lines, durable=False)
    aborted = {key: found for key, log in logs.items() if (found := aborted_of(log))}
    kept = {key: found for key, found in directory.aborted.items() if key in offline}
    checkpoints.write_aborted(file_system, f"{path}/{checkpoints.ABORTED_FILE}", {**kept, **aborted})
    if not offline and not directory.failure and not any(map(_is_broken, logs.values())):
        file_system.write_atomic(f"{path}/{checkpoints.CLEAN_SHUTDOWN_FILE}", clean_marker(), durable=False)


def _is_broken(log: Log) -> bool:
    """Whether bytes may lie behind the log's end, or a sync has failed."""
    return log.flush_state.has_failed_append or bool(log.flush_state.sync_error)
