"""Converts bytes to messages and back. Pure: no sockets, no files, no clock, no asyncio."""
