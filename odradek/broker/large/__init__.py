"""Large requests and responses: cut into pieces, made in slices, and limited in memory."""
