"""Memory that is free, back to the system: the C library keeps what lies between blocks in use."""

from contextlib import suppress


def give_back() -> None:
    """Give back what can be given back; no effect where the C library is not glibc."""
    # Most brokers never need it.
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
