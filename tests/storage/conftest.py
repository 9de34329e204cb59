"""The disk of tests of single files."""

import pytest

from odradek.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
def disk():
    file_system = MemoryFileSystem()
    file_system.make_dirs("/d")
    return file_system
