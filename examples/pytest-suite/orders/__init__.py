"""A service on Kafka: orders are placed, billed, and reminded of."""
