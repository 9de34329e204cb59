"""TLS, its stores, and the principals of certificates. Imported only if a listener uses TLS."""
