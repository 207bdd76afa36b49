"""One folder of a mailbox over IMAP, and waiting for new mail in it. Everything here blocks: it is
called in a thread of its own.

Nothing is deleted, moved or expunged: a mail that was taken is marked as seen, and that is all.
"""

import imaplib
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from imap_tools import AND, H, MailBox, MailBoxStartTls, MailBoxUnencrypted, U
from imap_tools.errors import ImapToolsError, MailboxFolderSelectError, MailboxLoginError
from imap_tools.idle import get_socket_poller
from imap_tools.mailbox import BaseMailBox

from palyra.features.channels.contract import ConnectionRefused, Lost
from palyra.features.channels.email.parse import Mail
from palyra.features.channels.email.servers import MailServer

# Larger mails are not fetched whole; their heads are.
MOST_BYTES = 40 << 20
# Routers in between forget a quiet connection after some minutes, and some servers forget to tell:
# then we look ourselves.
IDLE_S = 120
# How often we look where the server does not know IDLE.
LOOK_S = 30.0
_TIMEOUT_S = 30.0
# If the server has numbered its mails anew, these many days are looked through once more.
_AGAIN_DAYS = 7
ERRORS = (OSError, imaplib.IMAP4.error, ImapToolsError, EOFError)


class ImapMailbox:
    def __init__(self, server: MailServer, user: str, password: str, folder: str) -> None:
        self._server = server
        self._user = user
        self._password = password
        self._folder = folder
        self._box: BaseMailBox | None = None
        self._idles = True
        self.validity = 0
        self.last = 0

    def open(self, cursor: str, now_ms: int) -> None:
        """Log in, and go on behind `cursor`; without one, with what comes from now on."""
        box = self._logged_in()
        try:
            # Many servers say only now what they can do.
            self._idles = b"IDLE" in box.client.capability()[1][0].upper().split()
            box.folder.set(self._folder)
            status = box.folder.status(self._folder, ["UIDVALIDITY", "UIDNEXT"])
        except MailboxFolderSelectError as error:
            raise ConnectionRefused(
                f"there is no folder {self._folder} in the mailbox: set folder"
            ) from error
        except ERRORS as error:
            raise self._lost(error) from error
        self.validity = int(status["UIDVALIDITY"])
        validity, _, last = cursor.partition(":")
        if validity == str(self.validity):
            self.last = int(last)
        elif not cursor:
            self.last = int(status["UIDNEXT"]) - 1
        else:
            since = datetime.fromtimestamp(now_ms / 1_000, UTC).date() - timedelta(days=_AGAIN_DAYS)
            recent = [int(uid) for uid in box.uids(AND(date_gte=since), charset=None)]
            self.last = min(recent) - 1 if recent else int(status["UIDNEXT"]) - 1

    @property
    def cursor(self) -> str:
        return f"{self.validity}:{self.last}"

    def _logged_in(self) -> BaseMailBox:
        try:
            box = self._connected()
            box.email_message_class = Mail
            self._box = box
            login = (
                box.login if self._password.isascii() and self._user.isascii() else box.login_utf8
            )
            login(self._user, self._password, initial_folder=None)
            return box
        except MailboxLoginError as error:
            said = str(error.command_result[1]).upper()
            if any(word in said for word in ("[UNAVAILABLE]", "[LIMIT]", "[INUSE]", "[SERVERBUG]")):
                raise Lost(f"{self._server.host} does not let us in now") from None
            raise ConnectionRefused(
                f"{self._server.host} refuses the log-in of {self._user}: check the password; many"
                " providers need an app password"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise ConnectionRefused(
                f"the certificate of {self._server.host} is not valid: {error.verify_message}; set"
                " ca if it is one of your own"
            ) from error
        except ERRORS as error:
            raise self._lost(error) from error

    def _connected(self) -> BaseMailBox:
        host, port = self._server.host, self._server.port
        match self._server.security:
            case "tls":
                return MailBox(host, port, timeout=_TIMEOUT_S, ssl_context=self._server.context())
            case "starttls":
                return MailBoxStartTls(
                    host, port, timeout=_TIMEOUT_S, ssl_context=self._server.context()
                )
            case "none":
                return MailBoxUnencrypted(host, port, timeout=_TIMEOUT_S)

    def news(self) -> list[int]:
        """The numbers of mails behind the last one, in order."""
        self._open.client.untagged_responses.pop("EXISTS", None)
        try:
            found = self._open.uids(AND(uid=U(str(self.last + 1), "*")), charset=None)
        except ERRORS as error:
            raise self._lost(error) from error
        # If there is none behind it, `*` is the last one itself.
        return sorted(int(uid) for uid in found if int(uid) > self.last)

    def fetch(self, uid: int) -> tuple[Mail, int] | None:
        """A mail, and how many bytes it has if only its head was fetched. Nothing if it is gone
        meanwhile.
        """
        try:
            head = self._fetched(uid, headers_only=True)
            if head is None or head.size_rfc822 > MOST_BYTES:
                return (head, head.size_rfc822) if head is not None else None
            whole = self._fetched(uid, headers_only=False)
        except ERRORS as error:
            raise self._lost(error) from error
        return (whole, 0) if whole is not None else None

    def _fetched(self, uid: int, *, headers_only: bool) -> Mail | None:
        found = next(
            iter(self._open.fetch(uid_list=str(uid), headers_only=headers_only, mark_seen=False)),
            None,
        )
        return found if isinstance(found, Mail) else None

    def seen(self, uid: int) -> None:
        # Not by the library's own `flag`: that one expunges what others marked as deleted.
        with suppress(*ERRORS):
            self._open.client.uid("STORE", str(uid), "+FLAGS.SILENT", r"(\Seen)")

    def wait(self) -> None:
        """Return when there may be something new."""
        idle: Any = self._open.idle
        try:
            if not self._idles:
                get_socket_poller(self._open.client.sock, LOOK_S)  # type: ignore[arg-type]
                self._open.client.noop()
                return
            self._begin(idle)
            # What was said with the answer to another command since the last search is not said
            # again.
            if not self._open.client.untagged_responses.get("EXISTS") and not self._buffered():
                # Only waited for here, and read by `stop`: the library's own `poll` takes half a
                # line for the end.
                get_socket_poller(self._open.client.sock, IDLE_S)
            idle.stop()
        except ERRORS as error:
            raise self._lost(error) from error

    def _begin(self, idle: Any) -> None:
        """Start as the library's `start` does, which takes news that come before the server's OK
        for a refusal.
        """
        client: Any = self._open.client
        idle._idle_tag = tag = client._command("IDLE")
        while client._get_response() is not None:
            if client.tagged_commands[tag]:
                raise imaplib.IMAP4.error("the server does not take IDLE")

    def _buffered(self) -> bool:
        """Return whether the server has said something together with its yes to IDLE, which no poll
        would see.
        """
        client: Any = self._open.client
        before = client.sock.gettimeout()
        client.sock.settimeout(0)
        try:
            # Newer versions of Python have it under the second name.
            return bool((client.__dict__.get("file") or client._file).peek(1))
        except OSError:
            return False
        finally:
            client.sock.settimeout(before)

    def subject(self, message_id: str) -> str:
        """The subject of a mail in the folder; empty if it is not there."""
        box = self._logged_in()
        try:
            box.folder.set(self._folder, readonly=True)
            wanted = AND(header=H("Message-ID", message_id))
            found = next(
                iter(box.fetch(wanted, charset=None, headers_only=True, mark_seen=False, limit=1)),
                None,
            )
            return found.subject if found is not None else ""
        except ERRORS as error:
            raise self._lost(error) from error

    @property
    def _open(self) -> BaseMailBox:
        if self._box is None:
            raise Lost("the mailbox is not open")
        return self._box

    def cut(self) -> None:
        """End the connection from any thread: whoever waits on it stops."""
        if self._box is not None:
            with suppress(OSError):
                self._box.client.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it in the thread that uses it only: its socket's number is reused at once."""
        box, self._box = self._box, None
        if box is not None:
            with suppress(OSError):
                box.client.shutdown()

    def _lost(self, error: BaseException) -> Lost:
        return Lost(f"the connection to {self._server.host} is lost: {type(error).__name__}")
