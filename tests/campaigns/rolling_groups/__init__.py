"""A live group goes from the classic protocol to the consumer protocol and back, while it reads."""
