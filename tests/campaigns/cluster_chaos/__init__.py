"""Three brokers of odradek's under Apache Kafka's controller, killed, frozen and stopped in turn under transactional clients."""
