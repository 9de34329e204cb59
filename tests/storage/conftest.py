"""The disk of tests of single files."""

import pytest

from tests.memory_filesystem import MemoryFileSystem


@pytest.fixture
def disk():
    file_system = MemoryFileSystem()
    file_system.make_dirs("/d")
    return file_system
