"""The names of cipher suites in the standard and in OpenSSL."""

import ssl

from odradek.broker.security.cipher_suites import TLS_1_3_SUITES, openssl_name
from tests.cases import each_case


@each_case(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_openssl_has_every_suite_by_the_name_that_is_made_for_it(suite, name):
    assert openssl_name(suite) == name
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert name in {each["name"] for each in context.get_ciphers()}


def test_the_suites_of_tls_1_3_are_those_that_openssl_has():
    ciphers = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()
    assert {each["name"] for each in ciphers if each["protocol"] == "TLSv1.3"} == TLS_1_3_SUITES
