"""Tell which build this is: plain sources, or a compiled hot path (docs/operations.md, "A compiled build")."""

from importlib.util import find_spec

from odradek import __version__


def is_compiled() -> bool:
    """Return whether the compiled modules of a wheel are C extensions here. One module stands for all."""
    spec = find_spec("odradek.timing.timer")
    return spec is not None and not str(spec.origin).endswith(".py")


def description() -> str:
    """Return the version and the build, for people."""
    return f"{__version__}, {'compiled' if is_compiled() else 'pure Python'}"
