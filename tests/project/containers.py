"""The Dockerfile, instruction by instruction, the files that .dockerignore lets into a build, and the compose file."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.broker_process import REPOSITORY

DOCKERFILE: Final = (REPOSITORY / "Dockerfile").read_text()
_DOCKERIGNORE: Final = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
_COMPOSE: Final = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: Final = _COMPOSE["services"]
VOLUMES: Final = _COMPOSE["volumes"]


class Instruction(NamedTuple):
    """One instruction: ``RUN`` and its command, on one line."""

    name: str
    value: str


def words(value: str) -> list[str]:
    """The words of an instruction in JSON's form, or the shell's."""
    return json.loads(value) if value.startswith("[") else shlex.split(value)


def _stages() -> dict[str, list[Instruction]]:
    stages: dict[str, list[Instruction]] = {}
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line:
            continue
        instruction = Instruction(*line.split(maxsplit=1))
        if instruction.name == "FROM":
            base, _, name = instruction.value.partition(" AS ")
            instruction, steps = Instruction("FROM", base), stages.setdefault(name, [])
        steps.append(instruction)
    return stages


STAGES: Final = _stages()


def words_of(stage: str, name: str) -> list[str]:
    """What the last instruction of that name in the stage says, options aside."""
    value = [each.value for each in STAGES[stage] if each.name == name][-1]
    return words(re.sub(r"^(--\S+ )+(CMD )?", "", value))


def is_let_in(path: str) -> bool:
    """Whether .dockerignore lets the file in: the last pattern that matches it, or a directory above it, says so."""
    let_in = True
    for line in _DOCKERIGNORE:
        pattern = re.escape(line.removeprefix("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if re.match(rf"{pattern}(/|$)", path):
            let_in = line.startswith("!")
    return let_in


def copy_from_context(value: str, target: Path, working_directory: str = "/") -> None:
    """COPY's work, in the root ``target``. Raises FileNotFoundError where a source is not let in."""
    *sources, destination = words(value)
    inside = target / Path(working_directory, destination).relative_to("/")
    for source in sources:
        whole = REPOSITORY / source
        files = [path for path in (whole.rglob("*") if whole.is_dir() else [whole]) if path.is_file()]
        let_in = [path for path in files if is_let_in(path.relative_to(REPOSITORY).as_posix())]
        if not let_in:
            raise FileNotFoundError(f".dockerignore keeps {source} out, or it does not exist")
        for path in let_in:
            into = inside / path.relative_to(whole) if whole.is_dir() else inside
            # A directory where it ends in a slash, or is there.
            into = into / path.name if not whole.is_dir() and (destination.endswith("/") or inside.is_dir()) else into
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, into)


def compile_little(source: Path) -> None:
    """Have the build hook that was copied to ``source`` compile one small module: all of them take eleven minutes."""
    with (source / "tools" / "build_hook.py").open("a") as hook:
        hook.write('\nCOMPILED = {"odradek/protocol": "varint"}\n')
