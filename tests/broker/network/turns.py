"""Turns of the loop for connections without a broker."""

import asyncio


def in_the_next_turn(callback):
    """Of the loop; at once where there is none."""
    try:
        asyncio.get_running_loop().call_soon(callback)
    except RuntimeError:
        callback()
