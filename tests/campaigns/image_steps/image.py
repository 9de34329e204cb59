"""Builds the stages of the Dockerfile without a container engine: each of its steps in a root of Debian's."""

import re
import shutil
import string
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.campaigns.image_steps.root import Root
from tests.project.containers import STAGES, Instruction, compile_little, copy_from_context, words

# What the official images of Python have, as far as the Dockerfile uses it; theirs is in /usr/local.
SLIM: Final = ("netbase", "python3", "python3-pip", "python3-venv", "tzdata")
_ADDED: Final = {"python:3.13-slim": (), "python:3.13": ("gcc", "g++", "libc6-dev", "make", "python3-dev")}
_KEPT_FOR_LATER: Final = {"CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "VOLUME"}


@dataclass
class Image:
    """A stage that is built, or being built. ``steps`` are those that ran, with the seconds each took."""

    root: Root
    env: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    directory: str = "/"
    steps: list[tuple[str, float]] = field(default_factory=list)

    def start(self, command: list[str]):
        """A container: start a command in the root, as the image has it."""
        return self.root.start(command, self.user, self.directory, self.env)

    def mount(self, volumes: list[str]) -> None:
        """Mount new volumes. As an engine has it, one of a directory that the image lacks belongs to root."""
        for volume in volumes:
            (self.root.path / volume[1:]).mkdir(parents=True, exist_ok=True)


def make_base(path: Path) -> Root:
    """The root that all stages begin with."""
    base = Root.make(path, SLIM)
    for name in ("python", "pip"):
        (path / "usr" / "local" / "bin" / name).symlink_to(f"/usr/bin/{name}3")
    # Debian's Python installs nothing beside Debian's packages; that of the images does.
    for managed in path.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        managed.unlink()
    return base


def build(stage: str, base: Root, others: dict[str, Image], *, whole: bool) -> Image:
    """Run the steps of a stage. Unless it is to be ``whole``, one module is compiled and not all."""
    first, *instructions = STAGES[stage]
    begun = time.monotonic()
    image = Image(base.copy(base.path.with_name(stage)))
    added = _ADDED[first.value]
    if added:
        image.root.run(["sh", "-c", f"apt-get update && apt-get install -y --no-install-recommends {' '.join(added)}"])
    python = image.root.run(["python", "--version"])
    assert python.startswith(f"Python {first.value.removeprefix('python:').removesuffix('-slim')}."), python
    image.steps.append((f"FROM {first.value}", time.monotonic() - begun))
    for instruction in instructions:
        begun = time.monotonic()
        _perform(instruction, image, others, whole=whole)
        if instruction.name in {"COPY", "RUN"}:
            image.steps.append((f"{instruction.name} {instruction.value}", time.monotonic() - begun))
    return image


def _perform(instruction: Instruction, image: Image, others: dict[str, Image], *, whole: bool) -> None:
    name, value = instruction
    if name == "RUN":
        if "ODRADEK_COMPILE=1" in value and not whole:
            compile_little(image.root.path / image.directory[1:])
        image.root.run(["sh", "-c", value], user=image.user, directory=image.directory, env=image.env)
    elif name == "COPY" and value.startswith("--from="):
        other, source, target = value.removeprefix("--from=").split()
        shutil.copytree(others[other].root.path / source[1:], image.root.path / target[1:], symlinks=True)
    elif name == "COPY":
        copy_from_context(value, image.root.path, image.directory)
    elif name == "ENV":
        for word in words(value):
            key, _, text = word.partition("=")
            image.env[key] = string.Template(text).substitute({"PATH": Root.PATH} | image.env)
    elif name == "USER":
        image.user = value
    elif name == "WORKDIR":
        image.directory = value
        (image.root.path / value[1:]).mkdir(parents=True, exist_ok=True)
    else:
        assert name in _KEPT_FOR_LATER, f"no test runs the Dockerfile's {name}"


def with_ports(command: list[str], ports: dict[str, int]) -> list[str]:
    """A container's command, with free ports of this machine in the place of its own."""
    return [re.sub(r"\b\d{4,5}\b", lambda port: str(ports.get(port[0], port[0])), word) for word in command]
