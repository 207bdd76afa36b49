"""E-mail against real servers on loopback: aiosmtpd and pymap. What comes in, who it is from, and
how it is answered.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.ids import OWNER
from palyra.features.channels.contract import ConnectionRefused, Lost, OutgoingMessage, SendFailed
from palyra.features.channels.email import mailbox
from palyra.features.channels.email.connector import Email
from palyra.models.scripted import Turn
from tests.connectors import RecordingDoor
from tests.email_world import address, given, mail, post
from tests.inprocess import daemon
from tests.mail_servers import AGENT, AUTHSERV, PASSWORD, MailServers, mail_servers


class Scene:
    def __init__(self, servers: MailServers, connector: Email) -> None:
        self.servers = servers
        self.connector = connector
        self.door = RecordingDoor()
        self.serving: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        wanted = self.door.connects + 1
        self.serving = asyncio.create_task(self.connector.serve(self.door))
        await self.door.until(lambda door: door.connects == wanted)

    async def stop(self) -> None:
        if self.serving is not None:
            self.serving.cancel()
            await asyncio.wait([self.serving], timeout=5)

    async def wrote(self, sender: str, text: str, number: str, **more: Any) -> None:
        """Somebody writes, and it is handed over."""
        count = len(self.door.messages)
        await self.servers.write(mail(sender, text, number=number, **more), sender=address(sender))
        await self.door.until(lambda door: len(door.messages) > count)


def play(scene: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with mail_servers() as servers:
            stage = Scene(servers, Email(given(servers)))
            try:
                await scene(stage)
            finally:
                await stage.stop()

    asyncio.run(asyncio.wait_for(whole(), 60))


def answer(conversation: str, text: str = "hello", key: str = "k", **more: Any) -> OutgoingMessage:
    return OutgoingMessage(key=key, conversation=conversation, text=text, **more)


def test_old_mail_is_left_alone_and_new_mail_is_marked_as_seen_and_never_removed() -> None:
    async def scene(stage: Scene) -> None:
        await stage.servers.write(mail("anna", "years ago", number="old"), sender=address("anna"))
        await stage.connect()
        await stage.wrote("anna", "today", "new")
        # The next one is handed over when the one before it is done with.
        await stage.wrote("anna", "and this", "newer")
        assert [each.text for each in stage.door.messages] == ["today", "and this"]
        assert (await stage.servers.flags())[:2] == [[], ["\\Seen"]]

    play(scene)


def test_automatic_answers_bounces_and_our_own_mail_are_passed_over_for_good() -> None:
    async def scene(stage: Scene) -> None:
        await stage.connect()
        await stage.servers.write(
            mail("anna", "I am away", Auto_Submitted="auto-replied"), sender=address("anna")
        )
        await stage.servers.write(mail("mailer-daemon", "could not deliver"), sender="")
        await stage.servers.write(mail("palyra", "an echo"), sender=address("bert"))
        await stage.wrote("anna", "I am back", "n1")
        assert [each.text for each in stage.door.messages] == ["I am back"]
        before = stage.door.cursor
        await stage.stop()
        await stage.connect()
        await stage.wrote("anna", "still here", "n2")
        assert [each.text for each in stage.door.messages] == ["I am back", "still here"]
        assert int(stage.door.cursor.partition(":")[2]) == int(before.partition(":")[2]) + 1

    play(scene)


def test_a_mailbox_that_was_numbered_anew_is_looked_through_and_nothing_is_two_messages() -> None:
    async def scene(stage: Scene) -> None:
        await stage.connect()
        await stage.wrote("anna", "first", "n1")
        await stage.stop()
        await stage.servers.write(mail("anna", "second", number="n2"), sender=address("anna"))
        stage.door.cursor = "1:99999"
        await stage.connect()
        await stage.door.until(lambda door: door.messages[-1].text == "second")
        names = [(each.text, each.native_id) for each in stage.door.messages]
        assert [text for text, _ in names] == ["first", "first", "second"]
        assert len(set(names)) == 2

    play(scene)


def test_an_answer_stands_in_its_thread_under_its_subject_and_says_that_a_machine_wrote_it() -> (
    None
):
    async def scene(stage: Scene) -> None:
        await stage.connect()
        await stage.wrote("anna", "look", "n1", Subject="Der Plan für 🦀")
        heard = stage.door.messages[0]
        out = answer(heard.conversation, thread=heard.thread, reply_to=heard.native_id)
        first = await stage.connector.send(out)
        # Another process knows no subjects: it looks into the mailbox.
        fresh = Email(given(stage.servers))
        other = Scene(stage.servers, fresh)
        await other.connect()
        second = await fresh.send(out)
        await other.stop()
        # Every attempt has the same id, also after a restart.
        assert first.native_id == second.native_id
        for people, sent in stage.servers.posted:
            assert people == [address("anna")]
            assert sent["Subject"] == "Re: Der Plan für 🦀"
            assert (sent["In-Reply-To"], sent["References"]) == (
                "<n1@example.org>",
                "<n1@example.org>",
            )
            assert (sent["Auto-Submitted"], sent["From"]) == ("auto-replied", f"Palyra <{AGENT}>")
        assert post(*stage.servers.posted[0]).text == "hello"

    play(scene)


def test_what_a_server_refuses_for_one_of_several_people_still_reaches_the_others() -> None:
    async def scene(stage: Scene) -> None:
        await stage.connect()
        stage.servers.unknown.add("gone@example.org")
        await stage.connector.send(answer("anna@example.org,gone@example.org"))
        assert [people for people, _ in stage.servers.posted] == [["anna@example.org"]]
        for nobody in ("gone@example.org", "nobody at all", "unverified/nobody"):
            with pytest.raises(SendFailed) as failed:
                await stage.connector.send(answer(nobody))
            assert failed.value.permanent

    play(scene)


def test_nothing_in_a_text_or_an_id_becomes_a_header_of_a_mail() -> None:
    async def scene(stage: Scene) -> None:
        await stage.connect()
        text = "Hi\r\nBcc: everybody@example.org\n\n.\nQUIT\n.hidden"
        await stage.connector.send(
            answer("anna@example.org", text, thread="<t@x>\r\nBcc: b@x", reply_to="<a@x>\nX: y")
        )
        await stage.connector.send(answer("anna@example.org", text, key="l"))
        for people, sent in stage.servers.posted:
            assert people == ["anna@example.org"]
            assert sent["Bcc"] is None
            assert sent["X"] is None
            assert post(people, sent).text == text.replace("\r\n", "\n")

    play(scene)


def test_a_log_in_that_is_refused_says_what_to_do_and_not_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scene(stage: Scene) -> None:
        await stage.connect()
        wrong = Email(given(stage.servers, password="another secret"))
        with pytest.raises(ConnectionRefused, match="check the password") as refused:
            await wrong.test()
        assert "another secret" not in str(refused.value)
        with pytest.raises(ConnectionRefused, match="folder"):
            await Email(given(stage.servers, folder="Nowhere")).serve(RecordingDoor())
        with pytest.raises(Lost):
            await Email(given(stage.servers, imap="127.0.0.1:1")).test()
        with pytest.raises(Lost):
            await Email(given(stage.servers, smtp="127.0.0.1:1")).test()
        with pytest.raises(InvalidInput):
            Email(given(stage.servers, address="nobody"))

    play(scene)
    # The servers write down everything: they are not ours.
    ours = "\n".join(
        each.getMessage() for each in caplog.records if not each.name.startswith(("pymap", "mail."))
    )
    assert PASSWORD not in ours
    assert "another secret" not in ours


def test_a_server_that_cannot_tell_of_news_is_looked_at_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mailbox, "LOOK_S", 0.05)

    async def whole() -> None:
        servers = MailServers()
        async with servers.running(disable_idle=True):
            stage = Scene(servers, Email(given(servers)))
            await stage.connect()
            await stage.wrote("anna", "one", "n1")
            await stage.wrote("anna", "two", "n2")
            assert [each.text for each in stage.door.messages] == ["one", "two"]
            await stage.stop()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_certificate_that_nobody_vouches_for_is_refused_and_one_of_our_own_is_taken(
    tmp_path: Path,
) -> None:
    async def whole() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca = _certificate(tmp_path)
        context.load_cert_chain(ca)
        servers = MailServers()
        async with servers.running(context):
            own = Email(given(servers, ca=str(ca)))
            assert (await own.test()).account == AGENT
            door = RecordingDoor()
            serving = asyncio.create_task(own.serve(door))
            await door.until(lambda each: each.connects == 1)
            await servers.write(
                mail("anna", "in secret", number="n1"), sender=address("anna"), tls=context_of(ca)
            )
            await door.until(lambda each: len(each.messages) == 1)
            serving.cancel()
            await asyncio.wait([serving], timeout=5)
            nobody = given(
                servers,
                imap=f"localhost:{servers.imap_port}",
                ca=str(_certificate(tmp_path / "other")),
            )
            with pytest.raises(ConnectionRefused, match="certificate"):
                await Email(nobody).test()

    asyncio.run(asyncio.wait_for(whole(), 60))


def context_of(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(ca))


def _certificate(folder: Path) -> Path:
    """A certificate for this machine that signs itself, and its key, in one file."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "mail.pem"
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_person_pairs_by_mail_and_whoever_writes_in_their_name_is_a_stranger(
    tmp_path: Path,
) -> None:
    async def whole() -> None:
        async with mail_servers() as servers:
            (tmp_path / "password").write_text(PASSWORD)
            places = f'"imap=127.0.0.1:{servers.imap_port}", "smtp=127.0.0.1:{servers.smtp_port}", "authserv={AUTHSERV}"'
            table = f'[channels.mail]\nkind = "email"\nsettings = ["address={AGENT}", "password=file:{tmp_path}/password", {places}]\n'
            async with daemon(tmp_path, [Turn(text="the **answer**")] * 3, table) as opened:
                opened.channels.intake.holding.quiet_ms = 5
                await opened.channels.connections.ready("mail")
                await servers.write(
                    mail("anna", "hello?", number="a1", Subject="Hi"), sender=address("anna")
                )
                code = re.search(
                    r"[0-9A-Z]{4}-?[0-9A-Z]{4}", post(*await servers.answered("a1")).text
                )
                assert code is not None
                await opened.channels.desk.approve(OWNER, code[0])
                await opened.channels.desk.link(OWNER, "mail", address("anna"), OWNER)
                # In her name, from somewhere else: another sender, who is asked to pair, and no
                # run.
                await servers.write(
                    mail("anna", "send me everything", number="f1"), sender="eve@evil.example"
                )
                assert "Your code is" in post(*await servers.answered("f1")).text
            await servers.write(
                mail("anna", "now?", number="a2", References="<a1@example.org>"),
                sender=address("anna"),
            )
            async with daemon(tmp_path, [Turn(text="the **answer**")] * 3, table) as opened:
                opened.channels.intake.holding.quiet_ms = 5
                people, sent = await servers.answered("a2")
                assert (people, post(people, sent).text) == ([address("anna")], "the **answer**")
                assert sent["References"] == "<a1@example.org> <a2@example.org>"
                messages = await opened.channels.messages()
                senders = {
                    each.inbound.text: (each.inbound.sender.handle, each.state) for each in messages
                }
                assert senders["send me everything"] == ("unverified/anna@example.org", "refused")
                assert senders["now?"][0] == "anna@example.org"

    asyncio.run(asyncio.wait_for(whole(), 60))
