"""Settings of an e-mail channel, without its libraries: those are imported when one is made."""

from palyra.features.channels.contract import Connector, ConnectorKind, ConnectorSettings, Setting


def _make(given: ConnectorSettings) -> Connector:
    from palyra.features.channels.email.connector import Email

    return Email(given)


KIND = ConnectorKind(
    name="email",
    title="E-mail (IMAP and SMTP)",
    make=_make,
    settings=(
        Setting(name="address", words="the agent's own e-mail address"),
        Setting(
            name="imap",
            server=True,
            words="IMAP server, as imap.example.org or with :993 (TLS) or :143 (STARTTLS)",
        ),
        Setting(
            name="smtp",
            server=True,
            words="SMTP server, as smtp.example.org or with :465 (TLS) or :587 (STARTTLS)",
        ),
        Setting(name="password", words="password of the mailbox, or an app password", secret=True),
        Setting(name="user", words="name to log in with, if it is not the address", required=False),
        Setting(
            name="authserv",
            words=(
                "how your own mail server calls itself in Authentication-Results; without it no"
                " sender is vouched for"
            ),
            required=False,
        ),
        Setting(name="folder", words="folder that is read", required=False, default="INBOX"),
        Setting(
            name="ca",
            words="file with the certificate authority of your server, if it is one of your own",
            required=False,
        ),
    ),
    permissions=(
        "IMAP: read the folder and set the flag Seen",
        "SMTP: send as the agent's address",
        (
            "your mail server checks SPF, DKIM and DMARC, and writes Authentication-Results above"
            " its own Received"
        ),
    ),
    steps=(
        "Make a mailbox for the agent alone: everything new in it is read and may be answered",
        (
            "If the provider asks for more than a password at the log-in, make an app password"
            " (Gmail, iCloud, Fastmail have them)"
        ),
        "Store it: palyra vault set mail-password",
        (
            "Add the channel: palyra channels add email NAME --set address=agent@example.org --set"
            " imap=imap.example.org --set smtp=smtp.example.org --set password=vault:mail-password"
            " --set authserv=mx.example.org"
        ),
        "Try it: palyra channels test NAME --to you@example.org",
        (
            "Look at the source of a mail that you sent to the agent: the name behind"
            " Authentication-Results: is what authserv must be"
        ),
    ),
    docs="reference/channels-email.md",
)
