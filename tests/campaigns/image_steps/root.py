"""A small Debian in a directory, in which commands run as they would in a container: debootstrap, and Linux's namespaces.

It takes its packages from where this machine takes its own, and trusts the certificates that this machine trusts. A command
sees its root alone, and ends with all that it started. The network is this machine's.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

_ISOLATED: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_DEBIAN: Final = "trixie"
_MIRROR: Final = "http://deb.debian.org/debian"
_CERTIFICATES: Final = "usr/local/share/ca-certificates"
# As an engine has it, a container knows its own name, and docker-compose.yml's name of the broker.
_HOSTS: Final = f"127.0.0.1 localhost odradek {socket.gethostname()}\n"
# The whole compilation was not done after twenty minutes of processor time, an hour on a busy machine.
_TIMEOUT_S: Final = 3 * 3600


def missing() -> str | None:
    """Why there can be no such root here, if so."""
    if os.geteuid() != 0:
        return "a root to build in is made by the user root alone"
    if shutil.which("debootstrap") is None:
        return "debootstrap is missing: apt-get install debootstrap"
    tried = subprocess.run([*_ISOLATED, "--mount-proc", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces are to be had here: {tried.stderr.strip()}" if tried.returncode else None


class Root:
    """One root."""

    PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, path: Path, packages: tuple[str, ...]) -> Self:
        """A new one of Debian's packages."""
        names = ",".join(("ca-certificates", *packages))
        command = [*_ISOLATED, "debootstrap", "--variant=minbase", f"--include={names}", _DEBIAN, str(path), _mirror()]
        with _start(command) as process:
            _printed(process, command)
        (path / "etc" / "hosts").write_text(_HOSTS)
        for given in ("etc/resolv.conf", "etc/pip.conf"):
            if Path("/", given).exists():
                shutil.copy(Path("/", given), path / given)
        for given in (_CERTIFICATES, "etc/apt/auth.conf.d"):
            if Path("/", given).exists():
                shutil.copytree(Path("/", given), path / given, dirs_exist_ok=True)
        fetching = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
        (path / "etc" / "apt" / "apt.conf.d" / "99host").write_text(fetching)
        # As in the images of Debian: nobody minds if a power cut spoils one.
        (path / "etc" / "dpkg" / "dpkg.cfg.d" / "unsafe-io").write_text("force-unsafe-io\n")
        root = cls(path)
        root.run(["update-ca-certificates"])
        return root

    def copy(self, path: Path) -> "Root":
        """Another one with the same files."""
        subprocess.run(["cp", "--archive", str(self.path), str(path)], check=True)
        return Root(path)

    def size_mb(self) -> int:
        """Its size on disk."""
        command = ["du", "--summarize", "--block-size=MB", str(self.path)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("MB")[0])

    def run(self, command: list[str], **how: Any) -> str:
        """Run a command as ``start`` does, to its end; what it printed. Fails, and shows that, where the command does."""
        with self.start(command, **how) as process:
            return _printed(process, command)

    def start(
        self, command: list[str], user: str = "root", directory: str = "/", env: Mapping[str, str] = MappingProxyType({})
    ) -> "subprocess.Popen[str]":
        """Start a command. Of this machine's environment it has what pip is told, and the proxies, if there are any."""
        lines = (self.path / "etc" / "passwd").read_text().splitlines()
        [(uid, gid, _, home)] = [line.split(":")[2:6] for line in lines if line.startswith(f"{user}:")]
        inside = [f"--root={self.path}", f"--wd={directory}", "--mount-proc", f"--setgid={gid}", f"--setuid={uid}"]
        told = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")}
        told |= {"PIP_CERT": "/etc/ssl/certs/ca-certificates.crt", "PATH": self.PATH, "HOME": home, **env}
        return _start([*_ISOLATED, *inside, *command], told)


def _mirror() -> str:
    """Where this machine's own packages come from, if they are Debian's."""
    apt = Path("/etc/apt")
    lists = [apt / "sources.list", *apt.glob("sources.list.d/*.list"), *apt.glob("sources.list.d/*.sources")]
    text = "\n".join(path.read_text() for path in lists if path.is_file())
    found = re.search(r"^[^#\n]*?(https?://\S+/debian)/?(\s|$)", text, re.MULTILINE)
    return found[1] if found else _MIRROR


def _start(command: list[str], env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, **pipes, text=True, errors="replace", env=env)


def _printed(process: "subprocess.Popen[str]", command: list[str]) -> str:
    try:
        printed, _ = process.communicate(timeout=_TIMEOUT_S)
    finally:
        process.kill()
    assert process.returncode == 0, f"{' '.join(command)}: {printed[-5000:]}"
    return printed
