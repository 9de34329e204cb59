"""A year of a broker, under the virtual clock."""
