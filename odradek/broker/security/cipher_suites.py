"""``ssl.cipher.suites``: from the names of the standard, which Java and so Kafka have, to OpenSSL's.

TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256    ECDHE-RSA-AES128-GCM-SHA256
TLS_RSA_WITH_AES_256_CBC_SHA             AES256-SHA
TLS_AES_128_GCM_SHA256                   the same: TLS 1.3
"""

import re
from typing import Final

TLS_1_3_SUITES: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_SUITE: Final = re.compile(r"TLS_([A-Z0-9_]+)_WITH_([A-Z0-9_]+)")
_SIZED: Final = re.compile(r"(AES|CAMELLIA|ARIA)_(128|256)")


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite before TLS 1.3; a name that is OpenSSL's already stays."""
    parts = _SUITE.fullmatch(suite)
    if parts is None:
        return suite
    exchange, cipher = parts.groups()
    cipher = _SIZED.sub(r"\1\2", cipher).replace("_CBC_SHA", "_SHA").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = cipher.replace("CCM_8", "CCM8")
    name = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return name.replace("_", "-")
