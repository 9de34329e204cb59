"""odradek: a Kafka broker that you ``pip install``."""

__version__ = "0.1.0"
