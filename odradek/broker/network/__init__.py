"""Connections: from a socket's bytes to a request, and from a response to the socket. Independent of the APIs."""
