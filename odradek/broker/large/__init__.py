"""Large requests and responses: cut into pieces, made in slices, and held to a limit of memory."""
