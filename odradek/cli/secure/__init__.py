"""``odradek serve --secure``: a broker with TLS and passwords for its clients, set up by one flag.

Clients connect by SASL_SSL only, as the user ``odradek``. ``files`` makes the certificates and the password, keeps them with
the data, and adds them to the broker's settings. ``door`` prints the instructions for clients.
"""
