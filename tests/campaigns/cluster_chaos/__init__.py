"""Three brokers of odradek's and a controller, killed, frozen, stopped and cut off in turn under transactional clients."""
