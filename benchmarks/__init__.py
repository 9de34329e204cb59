"""Measures odradek side by side with Apache Kafka, in one run on one machine; see README.md."""
