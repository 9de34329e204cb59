"""The data directories of one broker: ``log.dirs`` and the metadata log's directory, which may not be one of them.

They belong to one cluster and one node, and each has an id. Any may be offline, except the metadata log's.
"""

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directory import METADATA_TOPIC, DataDirectory, DirectoryIdentity
from odradek.storage.errors import InconsistentDataDirectory
from odradek.storage.filesystem import FileSystem
from odradek.storage.recovery.recovery import Warn


class DataDirectories:
    """Iterates over ``log.dirs``, at least one. ``metadata`` is the first of them, unless another is configured."""

    def __init__(
        self, file_system: FileSystem, log_dirs: Sequence[str], metadata_dir: str | None, warn: Warn, *, reserve_bytes: int = 0
    ) -> None:
        self._log_dirs = [DataDirectory(file_system, path, warn, reserve_bytes) for path in log_dirs]
        self.metadata = self._log_dirs[0]
        self.all = list(self._log_dirs)
        if metadata_dir is not None:
            named = next((directory for directory in self._log_dirs if directory.path == metadata_dir), None)
            self.metadata = named or DataDirectory(file_system, metadata_dir, warn, reserve_bytes)
            if named is None:
                self.all.append(self.metadata)
        # True if Apache Kafka has run on these directories: odradek does not write this file.
        self.have_been_kafkas = file_system.exists(self.metadata.file(f"{METADATA_TOPIC}-0/quorum-state"))
        self._by_path = {directory.path: directory for directory in self.all}
        self._file_system = file_system

    def __iter__(self) -> Iterator[DataDirectory]:
        return iter(self._log_dirs)

    @property
    def lack_room(self) -> bool:
        """Return whether the disk of any directory is full."""
        return any(directory.reserve.is_wanted for directory in self.all)

    def fill_reserves(self) -> None:
        """Refill spent reserves, as far as there is room."""
        for directory in self.all:
            if directory.reserve.is_wanted and not directory.failure:
                directory.reserve.fill()

    @property
    def online(self) -> list[DataDirectory]:
        """Return the online directories of ``log.dirs``."""
        return [directory for directory in self._log_dirs if not directory.failure]

    @property
    def online_ids(self) -> list[UUID]:
        """Return the ids of the online directories."""
        return [directory.identity.directory_id for directory in self.online if directory.identity is not None]

    @property
    def are_online(self) -> bool:
        """Return whether all of ``log.dirs`` are online."""
        return not any(directory.failure for directory in self._log_dirs)

    def with_path(self, path: str) -> DataDirectory:
        """Return the directory at ``path``. Raises KeyError."""
        return self._by_path[path]

    def with_id(self, directory_id: UUID) -> DataDirectory | None:
        """Return the directory of ``log.dirs`` with this id; None if unknown, or offline since the start."""
        for directory in self._log_dirs:
            if directory.identity is not None and directory.identity.directory_id == directory_id:
                return directory
        return None

    def start(self, node_id: int, cluster_id: str | None, new_uuid: Callable[[], UUID]) -> DirectoryIdentity:
        """Lock the directories, creating missing ones, and read their top files. A failing directory goes offline.

        Returns the identity of the metadata log's directory. Raises DataDirectoryLocked, InconsistentDataDirectory, or OSError if
        the metadata log's directory or all of ``log.dirs`` fail. Then nothing was changed.
        """
        try:
            self._attempt_each(lambda directory: directory.take(node_id))
            agreed = self._agreed_cluster_id(cluster_id) or checkpoints.new_uuid_text(new_uuid)
            self._ensure_metadata_in_place()
            self._attempt_each(
                lambda directory: directory.begin(
                    lambda: DirectoryIdentity(cluster_id=agreed, node_id=node_id, directory_id=new_uuid())
                )
            )
        except BaseException:
            self.release()
            raise
        identity = self.metadata.identity
        assert identity is not None  # noqa: S101  a failing directory has raised
        return identity

    def release(self) -> None:
        """Unlock all directories. Idempotent."""
        for directory in self.all:
            directory.release()

    def _attempt_each(self, action: Callable[[DataDirectory], None]) -> None:
        for directory in self.all:
            if directory.failure:
                continue
            try:
                action(directory)
            except OSError as error:
                is_last = not any(other is not directory for other in self.online)
                if directory is self.metadata or is_last:
                    raise
                directory.fail(str(error))

    def _agreed_cluster_id(self, wanted: str | None) -> str | None:
        """Return the common cluster id of all directories, None if they have none. Raises InconsistentDataDirectory."""
        agreed = wanted
        ids: dict[UUID, str] = {}
        for directory in self.all:
            identity = directory.identity
            if identity is None:
                continue
            path = directory.file(checkpoints.META_PROPERTIES_FILE)
            if agreed not in (None, identity.cluster_id):
                raise InconsistentDataDirectory(f"{path} has the data of cluster {identity.cluster_id}, not {agreed}")
            agreed = identity.cluster_id
            if identity.directory_id in ids:
                raise InconsistentDataDirectory(f"{path} and {ids[identity.directory_id]} have the same directory.id")
            ids[identity.directory_id] = path
        return agreed

    def _ensure_metadata_in_place(self) -> None:
        """Raise InconsistentDataDirectory if the metadata log is in another directory than configured."""
        name = f"{METADATA_TOPIC}-0"
        if self._file_system.exists(self.metadata.file(name)):
            return
        for directory in self.online:
            if self._file_system.exists(directory.file(name)):
                raise InconsistentDataDirectory(
                    f"the metadata log is in {directory.path}, not in {self.metadata.path}: correct metadata.log.dir"
                )
