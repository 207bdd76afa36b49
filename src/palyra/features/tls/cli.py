"""`palyra tls`: where the daemon listens, with which certificates, and what other machines need to
trust them.
"""

import sys
from pathlib import Path

import click

from palyra.cli import formatting, json_shapes
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState

tls = group(
    "tls", "Who can reach the daemon, and its certificates: show, renew, export-ca.", default="show"
)


@verb(tls, "show", help="Where the daemon listens, and its certificates.")
def show(state: CliState) -> None:
    found = state.api.tls_status()
    out = state.out
    if out.as_json:
        out.json(json_shapes.listening(found))
        return
    for each in found.listeners:
        out.line(
            f"{out.style(f'{each.name:<12}', 'bold')}"
            f" {clean(each.address)}{'' if each.tls else '  (without TLS)'}"
        )
    if found.served is not None:
        by = "our own authority" if found.served.own else clean(found.served.issuer)
        out.line(f"{out.style('certificate ', 'bold')} {clean(', '.join(found.served.names))}")
        out.line(f"             by {by}, until {formatting.when(found.served.expires_ms)}")
        out.line(f"             SHA-256 {found.served.fingerprint}")
    if found.authority is not None:
        out.line(
            f"{out.style('authority   ', 'bold')} {clean(found.authority.subject)}, until"
            f" {formatting.when(found.authority.expires_ms)}"
        )
        out.line(f"             SHA-256 {found.authority.fingerprint}")
    for worker in found.workers:
        now = (
            f"revoked {formatting.when(worker.revoked_ms)}"
            if worker.revoked_ms
            else f"until {formatting.when(worker.expires_ms)}"
        )
        out.line(
            f"{out.style('worker      ', 'bold')} {clean(worker.name)}, {now}, SHA-256"
            f" {worker.fingerprint}"
        )


@verb(
    tls,
    "renew",
    help="Make a new certificate, or read your own files again; connections that are open stay.",
)
def renew(state: CliState) -> None:
    fresh = state.api.renew_certificate()
    if state.out.as_json:
        state.out.json(json_shapes.certificate(fresh))
    else:
        state.out.line(
            f"in use until {formatting.when(fresh.expires_ms)}: SHA-256 {fresh.fingerprint}"
        )


@verb(
    tls,
    "export-ca",
    help="Print the certificate of the daemon's own authority, for other machines to trust.",
)
@click.argument("file", required=False)
def export_ca(state: CliState, file: str | None) -> None:
    pem = state.api.get_certificate_authority()
    if file:
        Path(file).write_bytes(pem)
        state.out.note(
            f"{file} is for the machines that call this one: name it in PALYRA_CA there, or let"
            " their system trust it"
        )
    else:
        sys.stdout.write(pem.decode("ascii"))
