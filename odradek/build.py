"""Which build this is: the sources as they are, or the hot path compiled (docs/operations.md, "A compiled build")."""

from importlib.util import find_spec

from odradek import __version__


def is_compiled() -> bool:
    """Return whether the modules that a wheel has compiled, of which one stands for all, are C extensions here."""
    spec = find_spec("odradek.timing.timer")
    return spec is not None and not str(spec.origin).endswith(".py")


def description() -> str:
    """The version and the build, for people."""
    return f"{__version__}, {'compiled' if is_compiled() else 'pure Python'}"
