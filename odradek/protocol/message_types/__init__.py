"""The canonical messages, a module an API (odradek.protocol.messages). Written by tools/generate_messages.py."""
