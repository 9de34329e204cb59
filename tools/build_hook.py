"""Hatchling's build hook: with ODRADEK_COMPILE=1, mypyc compiles the hot path to C; the wheel has the extensions and the source.

    ODRADEK_COMPILE=1 pip wheel --no-deps --wheel-dir dist .

The Python files are the same, without additions: mypyc turns each module into a C extension with the same behaviour. This needs
a C compiler and some two minutes. Without the variable, and for editable installations, the hook does nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The modules that the event loop runs for a request. Start-up code stays interpreted. So does code that runs in threads of its
# own (recovery, compaction), since a compiled loop does not release the interpreter to the event loop.
COMPILED = {
    "odradek/timing": "*",
    "odradek/coordinator": "**/*",
    "odradek/storage": "filesystem",
    "odradek/storage/log": """
        control_batches flush_state follower_appends index leader_epochs local_log log log_lookup log_truncation
        log_writer producer_state segment transaction_index validation
    """,
    "odradek/protocol": """
        broker_codecs consumer_heartbeats control_records frames hashing offset_commit plain_batches produce_request
        produce_response record_batch record_walk varint
    """,
    "odradek/protocol/coordinator_records": "offsets transactions",
    "odradek/common": "context",
    "odradek/controller/cluster": "quorum_leader",
    "odradek/broker/coordination": "*",
    "odradek/broker/network": """
        connection dispatch flow_control request_limits response_queue route socket_writer
    """,
    "odradek/broker/replica": """
        delayed_fetch delayed_produce fetch_partitions fetch_sessions follower_fetch partition partitions roles
    """,
    "odradek/broker/share": """
        acknowledgement acquisition delayed_share_fetch in_flight in_flight_window read_batches share_partition
        share_partition_manager share_sessions
    """,
    "odradek/broker/api": """
        add_offsets_to_txn add_partitions_to_txn consumer_group_heartbeat end_txn fetch heartbeat init_producer_id
        join_group leave_group list_offsets offset_commit offset_fetch produce sync_group txn_offset_commit
    """,
}
# Interfaces, base classes, and packages' own files.
INTERPRETED = {
    "__init__.py",
    "background.py",
    "clock.py",
    "interface.py",
    "ports.py",
    "seeded_background.py",
    "threaded_background.py",
}

# A C file for each module, several at once: the C compiler takes far longer for one file of 650,000 lines.
_SETUP = """
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mypyc.build import mypycify
from setuptools import setup
from setuptools.command.build_ext import build_ext

from mend_generated import mend


class BuildInParallel(build_ext):
    def build_extensions(self):
        compile_in_turn = self.compiler.compile

        def compile(sources, **options):
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                compiled = list(pool.map(lambda source: compile_in_turn([source], **options), sources))
            return [name for names in compiled for name in names]

        self.compiler.compile = compile
        super().build_extensions()


extensions = mypycify({modules!r}, opt_level={level!r}, debug_level="0", multi_file=True, group_name="odradek")
mend(Path("build"))
setup(name="odradek", packages=[], ext_modules=extensions, cmdclass={{"build_ext": BuildInParallel}})
"""


def compiled_modules(root: Path) -> list[str]:
    """The modules to compile, relative to ``root``."""
    found = [path for folder, names in COMPILED.items() for name in names.split() for path in root.glob(f"{folder}/{name}.py")]
    return sorted(path.relative_to(root).as_posix() for path in found if path.name not in INTERPRETED)


def is_wanted() -> bool:
    """Whether ODRADEK_COMPILE asks for compilation."""
    return os.environ.get("ODRADEK_COMPILE", "") not in {"", "0"}


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the extensions to a wheel, and tags it for this machine and this Python."""

    def dependencies(self) -> list[str]:
        """The packages that the build environment needs: the compilers, and the types that the modules use."""
        if not is_wanted():
            return []
        return ["mypy>=2.4", "setuptools>=77", *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, outside of the source tree, before the wheel is built."""
        if version == "editable" or not is_wanted():
            return
        self._built = tempfile.TemporaryDirectory()
        for extension in compile_modules(Path(self.root), Path(self._built.name)):
            build_data["force_include"][str(extension)] = extension.relative_to(self._built.name).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  hatchling's signature
        """Remove the temporary extensions after the build."""
        if hasattr(self, "_built"):
            self._built.cleanup()


def compile_modules(root: Path, target: Path, level: str = "3") -> list[Path]:
    """Compile ``root``'s modules; returns the extensions, below ``target``. Raises CalledProcessError.

    ``level`` is the C compiler's optimisation level.
    """
    with tempfile.TemporaryDirectory() as scratch:
        # A separate copy, since the compilers write beside their input, and read the settings of the project that contains it.
        shutil.copytree(root / "odradek", Path(scratch, "odradek"), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(Path(__file__).with_name("mend_generated.py"), scratch)
        Path(scratch, "setup.py").write_text(_SETUP.format(modules=compiled_modules(root), level=level))
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(target), "--build-temp", "objects"]
        subprocess.run(command, cwd=scratch, check=True)
    return sorted(path for path in target.rglob("*") if path.suffix in {".so", ".pyd"})
