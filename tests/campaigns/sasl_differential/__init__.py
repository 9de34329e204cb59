"""The same clients, and the same frames, to the SASL listeners of odradek and of Apache Kafka."""
