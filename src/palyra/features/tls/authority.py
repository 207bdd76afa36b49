"""Certificates as such: a local authority, and what it signs. Pure: bytes in, bytes out; where they
are kept is not known here.

Keys are ECDSA P-256, which every TLS library of the last ten years takes. This module loads an
X.509 library, so it is imported where a certificate is needed and not before.

Showing that one has the key of a certificate, where a connection does not show it: something
fresh is signed.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from palyra.api.listen_sockets import CertificateFacts, Pair
from palyra.core.errors import ConfigInvalid, InvalidInput

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


_AUTHORITY = timedelta(days=3_650)
_SERVER = timedelta(days=90)
_CLIENT = timedelta(days=365)
# Clocks of other machines may be behind ours.
_BEHIND = timedelta(days=1)
_LONGEST_REQUEST = 16 << 10

_Key = ec.EllipticCurvePrivateKey


def new_authority(label: str, now_ms: int) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Palyra authority of {label}"[:64])
    begins = _time(now_ms)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begins - _BEHIND)
        .not_valid_after(begins + _AUTHORITY)
        # It signs certificates of servers and workers, and no further authorities.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def issue_server(authority: Pair, names: Sequence[str], now_ms: int) -> Pair:
    """A certificate for a server that is called by these names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _issued(
        authority, names[0], key.public_key(), now_ms, _SERVER, ExtendedKeyUsageOID.SERVER_AUTH
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
    )
    return Pair(_pem(_signed(authority, builder)) + authority.certificate, _key_pem(key))


def issue_client(authority: Pair, name: str, now_ms: int, request: bytes = b"") -> Pair:
    """A certificate for a client of this name. With a signing request, its key never leaves the
    machine that made it.
    """
    key = None if request else ec.generate_private_key(ec.SECP256R1())
    public = key.public_key() if key is not None else _requested(request)
    builder = _issued(authority, name, public, now_ms, _CLIENT, ExtendedKeyUsageOID.CLIENT_AUTH)
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"palyra:worker:{name}")])
    certificate = _pem(_signed(authority, builder.add_extension(names, critical=False)))
    return Pair(certificate, _key_pem(key) if key is not None else b"")


def new_request(name: str) -> Pair:
    """A signing request and its key: what a worker makes for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder(_name(name)).sign(key, hashes.SHA256())
    return Pair(request.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def facts(certificate: bytes) -> CertificateFacts:
    found = _read(certificate)
    try:
        general = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        general = x509.SubjectAlternativeName([])
    return CertificateFacts(
        fingerprint=found.fingerprint(hashes.SHA256()).hex(),
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        names=tuple(str(each.value) for each in general),
        begins_ms=int(found.not_valid_before_utc.timestamp() * 1000),
        expires_ms=int(found.not_valid_after_utc.timestamp() * 1000),
    )


def signed_by(certificate: bytes, authority: bytes) -> bool:
    try:
        _read(certificate).verify_directly_issued_by(_read(authority))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def belongs(pair: Pair) -> bool:
    """Return whether the key is the certificate's."""
    return _private(pair.key).public_key() == _read(pair.certificate).public_key()


def _issued(
    authority: Pair,
    name: str,
    public: ec.EllipticCurvePublicKey,
    now_ms: int,
    lasts: timedelta,
    use: x509.ObjectIdentifier,
) -> x509.CertificateBuilder:
    above, begins = _read(authority.certificate), _time(now_ms)
    # What is signed cannot be good for longer than who signed it.
    ends = min(begins + lasts, above.not_valid_after_utc)
    return (
        x509.CertificateBuilder(
            above.subject, _name(name[:64]), public, x509.random_serial_number()
        )
        .not_valid_before(max(begins - _BEHIND, above.not_valid_before_utc))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(_elliptic(above.public_key())),
            critical=False,
        )
    )


def _signed(authority: Pair, builder: x509.CertificateBuilder) -> x509.Certificate:
    return builder.sign(_private(authority.key), hashes.SHA256())


def _requested(request: bytes) -> ec.EllipticCurvePublicKey:
    refusal = InvalidInput(
        "this is no signing request for a P-256 key, as PEM: let the worker make it again"
    )
    if len(request) > _LONGEST_REQUEST:
        raise refusal
    try:
        found = x509.load_pem_x509_csr(request)
    except ValueError:
        raise refusal from None
    public = found.public_key()
    if (
        not found.is_signature_valid
        or not isinstance(public, ec.EllipticCurvePublicKey)
        or public.curve.name != "secp256r1"
    ):
        raise refusal
    return public


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name)
    except ValueError:
        raise ConfigInvalid(
            f"{name!r} cannot stand in a certificate: names are ASCII, such as palyra.example.org"
        ) from None


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _time(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms // 1000, UTC)


def _read(certificate: bytes) -> x509.Certificate:
    """The first certificate of a file: the one that its key belongs to."""
    try:
        return x509.load_pem_x509_certificates(certificate)[0]
    except ValueError:
        raise ConfigInvalid("this is no certificate in PEM form") from None


def _private(key: bytes) -> _Key:
    # Files of the operator may hold other kinds; comparing public keys works for all of them.
    return serialization.load_pem_private_key(key, None)  # type: ignore[return-value]


def _elliptic(key: object) -> ec.EllipticCurvePublicKey:
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
