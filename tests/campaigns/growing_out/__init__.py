"""From odradek to Apache Kafka and back: on one data directory, and without a stop. Nothing is lost, doubled or begun anew."""
