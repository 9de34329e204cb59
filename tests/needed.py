"""The programs that some tests need beside Python. Without one, its tests are skipped: see ``pytest_runtest_makereport``."""

import os
import shutil
import sysconfig
from pathlib import Path

from benchmarks.load_tool import MissingTool

# Names of Debian's packages that differ from the program's.
_PACKAGES = {"go": "golang", "mvn": "maven", "java": "default-jdk-headless", "cc": "gcc python3-dev"}
_JAVAS = ("java", "javac", "keytool")


def needed(program: str, *other_names: str) -> str:
    """Return the path of a program, in JAVA_HOME if it is one of Java's and that is set. Raises MissingTool."""
    home = os.environ.get("JAVA_HOME")
    names = [str(Path(home, "bin", program))] if home and program in _JAVAS else [program, *other_names]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise MissingTool(missing("java", "there is no Java, 17 or newer") if program in _JAVAS else missing(program))
    return found


def needed_c_compiler() -> None:
    """Raise MissingTool where no C extension of Python can be built: the compiler, or Python's headers, are missing."""
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise MissingTool(missing("cc", "there is no C compiler, or no Python.h"))


def missing(program: str, what: str = "") -> str:
    """The line that says what is missing, or what else is wrong with a program, and the command that mends it."""
    package = _PACKAGES.get(program, program)
    return f"{what or f'there is no {program}'}: sudo apt-get install -y --no-install-recommends {package}"
