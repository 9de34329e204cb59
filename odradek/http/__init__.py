"""The broker's HTTP port: a page, the metrics, and the control API.

``port`` has the socket, ``connection`` one connection of it, ``access`` decides about a request by its head, and ``app`` has the
paths. Uvicorn reads and writes HTTP, Starlette finds the path. Both are imported when the port is served, not before.
"""
