"""The programs that some tests need beside Python. Without one, its tests are skipped: see ``pytest_runtest_makereport``."""

import os
import shutil
from pathlib import Path

from benchmarks.load_tool import MissingTool

# Names of Debian's packages that differ from the program's.
_PACKAGES = {"go": "golang", "mvn": "maven", "java": "default-jdk-headless"}
_JAVAS = ("java", "javac", "keytool")


def needed(program: str, *other_names: str) -> str:
    """Return the path of a program, in JAVA_HOME if it is one of Java's and that is set. Raises MissingTool."""
    home = os.environ.get("JAVA_HOME")
    names = [str(Path(home, "bin", program))] if home and program in _JAVAS else [program, *other_names]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise MissingTool(missing("java", "there is no Java, 17 or newer") if program in _JAVAS else missing(program))
    return found


def missing(program: str, what: str = "") -> str:
    """The line that says what is missing, or what else is wrong with a program, and the command that mends it."""
    package = _PACKAGES.get(program, program)
    return f"{what or f'there is no {program}'}: sudo apt-get install -y --no-install-recommends {package}"
