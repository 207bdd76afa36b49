"""What the nodes of one journal derive from the secret that they share: certificates for the link
between them, and the key of the files that they have in common.

Every node derives the same authority and issues a certificate to itself, so a node proves with
every connection that it has the secret, and nothing needs to be enrolled.
"""

import hmac
import os
import shlex
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID

from palyra.core.errors import ConfigInvalid
from palyra.serve import config

# The name in every node's certificate: what counts is who signed it.
NODE_NAME = "node.palyra"
_SHORTEST = 32
_COMMAND_S = 30
_COMMAND = "command:"
# Clocks of nodes may be anywhere: who has the secret is in.
_ALWAYS = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC))


def read_secret(reference: str, env: Mapping[str, str]) -> bytes:
    """Return the secret that a setting refers to, or raise ConfigInvalid."""
    if reference.startswith(_COMMAND):
        found = _output(reference.removeprefix(_COMMAND))
    elif reference.startswith(("env:", "file:", "keyring:")):
        found = config.secret(reference, env)
    else:
        raise ConfigInvalid(
            "cluster.secret names where the secret is: env:NAME, file:/PATH, keyring:NAME or"
            " command:PROGRAM",
            key="cluster.secret",
        )
    if len(found) < _SHORTEST:
        raise ConfigInvalid(
            f"the secret of the cluster has fewer than {_SHORTEST} characters: make one with"
            " `openssl rand -hex 32`",
            key="cluster.secret",
        )
    return found.encode()


def _output(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=_COMMAND_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ConfigInvalid(
            f"the command of cluster.secret failed ({type(error).__name__}): try it by hand",
            key="cluster.secret",
        ) from None
    return done.stdout.strip()


class ClusterKeys:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._files = AESGCM(self._derived(b"files"))

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.digest(self._secret, b"palyra cluster: " + purpose, "sha256")

    @property
    def proof(self) -> bytes:
        """What shows that two nodes have the same secret, and tells nothing of it."""
        return self._derived(b"proof")

    def digest(self, name: str, body: bytes) -> bytes:
        """Return what tells two contents of a file apart, and says nothing of either."""
        return hmac.digest(self._derived(b"digests"), name.encode() + b"\0" + body, sha256)

    def seal(self, name: str, body: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._files.encrypt(nonce, body, name.encode())

    def open(self, name: str, sealed: bytes) -> bytes:
        try:
            return self._files.decrypt(sealed[:12], sealed[12:], name.encode())
        except InvalidTag:
            raise ConfigInvalid(
                f"the shared file {name} is not what a node has stored: somebody changed it in the"
                " database; restore the database from a backup"
            ) from None

    def listening(self) -> ssl.SSLContext:
        """Return the context of the link's listener: only nodes get through."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def calling(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trust(context)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        key = Ed25519PrivateKey.from_private_bytes(self._derived(b"authority"))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Palyra nodes")])
        authority = (
            x509.CertificateBuilder(name, name, key.public_key(), 1, *_ALWAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, None)
        )
        own = Ed25519PrivateKey.generate()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NODE_NAME)])
        issued = (
            x509.CertificateBuilder(
                name, subject, own.public_key(), x509.random_serial_number(), *_ALWAYS
            )
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(NODE_NAME)]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()),
                critical=False,
            )
            .sign(key, None)
        )
        pem = serialization.Encoding.PEM
        context.load_verify_locations(cadata=authority.public_bytes(pem).decode())
        private = own.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        # The library reads a key from a file only.
        with tempfile.TemporaryDirectory(prefix="palyra-link-") as folder:
            path = Path(folder) / "node.pem"
            path.write_bytes(private + issued.public_bytes(pem))
            context.load_cert_chain(path)
