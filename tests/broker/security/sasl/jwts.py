"""Tokens as an authorisation server makes them, and its JWKS document."""

import base64
import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = rsa.generate_private_key(65537, 2048)


def jwks(**keys):
    """The document with public keys, by key id."""
    rows = []
    for key_id, key in (keys or {"rsa": RSA_KEY, "ec": EC_KEY}).items():
        algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        rows.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig"})
    return json.dumps({"keys": rows})


def signed(claims, key=RSA_KEY, algorithm="RS256", key_id="rsa"):
    return jwt.encode(claims, key, algorithm, headers={} if key_id is None else {"kid": key_id})


def unsecured(claims, header=None, signature=""):
    parts = ({"alg": "none"} if header is None else header, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, signature])


def message(token, authorization_id=None, extensions=""):
    name = "" if authorization_id is None else f"a={authorization_id}"
    return f"n,{name},\x01auth=Bearer {token}\x01{extensions}\x01".encode()
