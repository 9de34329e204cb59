"""``odradek serve --secure``: a broker whose door is shut, and the key to it.

Clients come in by SASL_SSL alone, as the user ``odradek``. ``files`` makes the certificates and the password, and keeps them with
the data; ``settings`` has the broker use them; ``clients`` says what a client needs.
"""
