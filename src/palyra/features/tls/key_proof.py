"""Showing that one has the key of a certificate, where a connection does not show it: something
fresh is signed.
"""

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_HOW = ec.ECDSA(hashes.SHA256())


def sign(key: bytes, message: bytes) -> bytes:
    private = serialization.load_pem_private_key(key, None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return private.sign(message, _HOW)


def proves(certificate: str, message: bytes, signature: bytes) -> bool:
    try:
        public = x509.load_pem_x509_certificate(certificate.encode()).public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        public.verify(signature, message, _HOW)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
