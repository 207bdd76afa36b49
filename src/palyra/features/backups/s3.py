"""Backups in an S3-compatible store, with requests signed by AWS Signature Version 4.

A PUT is whole or not there at all, so nothing has to be renamed.
"""

import hashlib
import hmac
import http.client
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from palyra.core.errors import ConfigInvalid, InvalidInput, Unavailable
from palyra.features.backups.model import (
    BackupSettings,
    Secret,
    StoredBackup,
    is_name,
    made_ms_of,
    missing,
)

_SECONDS = 60.0
_PIECE = 1 << 20
# What a store takes in one request.
_LARGEST = 5 << 30
_MOST_ANSWER = 8 << 20
_MOST_PAGES = 1_000
_EMPTY = hashlib.sha256(b"").hexdigest()
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class S3Keys:
    """The key by which requests are signed. It is never shown."""

    def __init__(self, access: str, secret: str, region: str) -> None:
        self.access = access
        self._secret = secret
        self.region = region

    def sign(self, day: str, text: str) -> str:
        key = f"AWS4{self._secret}".encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.digest(key, text.encode(), "sha256").hex()


def signed_headers(
    keys: S3Keys,
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    body_digest: str,
    moment: float,
) -> dict[str, str]:
    """Return the headers of a request with its signature. `path` and `query` are not quoted."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(moment))
    headers = {"host": host, "x-amz-content-sha256": body_digest, "x-amz-date": stamp}
    named = ";".join(sorted(headers))
    canonical = "\n".join(
        [
            method,
            quoted(path),
            query_string(query),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            named,
            body_digest,
        ]
    )
    scope = f"{stamp[:8]}/{keys.region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signature = keys.sign(stamp[:8], f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}")
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, SignedHeaders={named},"
        f" Signature={signature}"
    )
    return headers


def quoted(path: str) -> str:
    return quote(path, safe="/-_.~")


def query_string(query: Mapping[str, str]) -> str:
    return "&".join(
        f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query.items())
    )


class S3Target:
    """One bucket, below a prefix. The bucket stands in the path, which every store understands."""

    def __init__(self, endpoint: str, bucket: str, prefix: str, keys: S3Keys) -> None:
        self.name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._endpoint = urlsplit(endpoint)
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._keys = keys

    @classmethod
    def of(cls, settings: BackupSettings, secret: Secret) -> "S3Target":
        address = urlsplit(settings.target)
        endpoint = settings.endpoint or f"https://s3.{settings.region}.amazonaws.com"
        where = urlsplit(endpoint)
        if not address.hostname or not where.hostname:
            raise ConfigInvalid(
                f"{settings.target[:100]!r} with the endpoint {endpoint[:100]!r} names no bucket:"
                " use s3://BUCKET/PREFIX and https://HOST"
            )
        if where.scheme != "https" and where.hostname not in _LOOPBACK:
            raise ConfigInvalid(f"the endpoint {endpoint[:100]!r} of backups must be https")
        if not settings.access_key or not settings.secret_key:
            raise ConfigInvalid("backups to S3 need backups.access_key and backups.secret_key")
        keys = S3Keys(secret(settings.access_key), secret(settings.secret_key), settings.region)
        return cls(endpoint, address.netloc, address.path.strip("/"), keys)

    def listing(self) -> list[StoredBackup]:
        found: list[StoredBackup] = []
        query = {"list-type": "2", "prefix": f"{self._prefix}home-"}
        for _ in range(_MOST_PAGES):
            page = _xml(self._ask("GET", "", query))
            for each in page.iter("Contents"):
                name = (each.findtext("Key") or "").removeprefix(self._prefix)
                if is_name(name):
                    size = int(each.findtext("Size") or 0)
                    found.append(StoredBackup(name, size, made_ms_of(name)))
            following = page.findtext("NextContinuationToken")
            if not following:
                break
            query["continuation-token"] = following
        return found

    def put(self, archive: Path, name: str) -> None:
        size = archive.stat().st_size
        if size > _LARGEST:
            raise InvalidInput(
                f"the backup has {size >> 30} GB, and one request to an S3 store takes 5: seal old"
                " sessions (retention.sessions_after_days), or use a folder or SFTP"
            )
        with archive.open("rb") as body:
            digest = hashlib.file_digest(body, "sha256").hexdigest()
            body.seek(0)
            self._ask("PUT", name, {}, body=body, size=size, digest=digest)

    def get(self, name: str, place: Path) -> None:
        with place.open("wb") as file:
            self._ask("GET", name, {}, into=file)

    def remove(self, name: str) -> None:
        self._ask("DELETE", name, {})

    def tidy(self, prefix: str) -> None:
        """Do nothing: no backup is ever cut short here."""

    def _ask(
        self,
        method: str,
        name: str,
        query: Mapping[str, str],
        *,
        body: IO[bytes] | None = None,
        size: int = 0,
        digest: str = _EMPTY,
        into: IO[bytes] | None = None,
    ) -> bytes:
        base = self._endpoint.path.rstrip("/")
        path = f"{base}/{self._bucket}" + (f"/{self._prefix}{name}" if name else "")
        host = self._endpoint.netloc
        headers = signed_headers(self._keys, method, host, path, query, digest, time.time())
        headers["content-length"] = str(size)
        target = quoted(path) + (f"?{query_string(query)}" if query else "")
        connect = (
            http.client.HTTPSConnection
            if self._endpoint.scheme == "https"
            else http.client.HTTPConnection
        )
        connection = connect(host, timeout=_SECONDS)
        try:
            connection.request(method, target, body=body, headers=headers)
            answer = connection.getresponse()
            if answer.status == 404 and name:
                raise missing(name, self.name)
            if answer.status >= 300:
                raise self._refused(answer.status, answer.read(_MOST_ANSWER))
            if into is None:
                return answer.read(_MOST_ANSWER)
            while piece := answer.read(_PIECE):
                into.write(piece)
            return b""
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{self.name} cannot be reached at {host}: {error}") from error
        finally:
            connection.close()

    def _refused(self, status: int, body: bytes) -> Unavailable:
        try:
            found = _xml(body)
            why = f"{found.findtext('Code')}: {found.findtext('Message')}"
        except Unavailable:
            why = "without a reason"
        return Unavailable(f"{self.name} refuses with status {status}, {why[:300]}")


def _xml(body: bytes) -> ElementTree.Element:
    """Parse an answer, without the names' space. A document with a type is refused: entities in it
    could grow without end.
    """
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise Unavailable("the S3 store answers with a document type, which no store does")
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise Unavailable(f"the S3 store answers with something else than XML: {error}") from error
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    return root
