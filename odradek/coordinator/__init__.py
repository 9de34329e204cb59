"""The group and transaction coordinators, and the runtime that will host their shards."""
