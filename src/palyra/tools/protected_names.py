"""Names that no file tool touches, whatever a policy says: version control's own folder, keys and
credentials.

A name is compared as the most forgiving file system would see it: case, width, invisible characters
and trailing dots do not make another name.
"""

import re
from fnmatch import translate
from functools import cache

from palyra.core.input_checks import fold

TEMPORARY = ".palyra-tmp-"

_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".kube", ".password-store"})
_SHOWN_ENV = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
_SECRETS = (
    ".env* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk id_rsa* id_dsa* id_ecdsa*"
    " id_ed25519* secring.* .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd"
    " .dockercfg .vault-token .boto .s3cfg .terraformrc application_default_credentials.json"
    " service-account*.json service_account*.json"
)
# Names that are ordinary elsewhere and secrets in the folder of the tool that keeps them there.
_IN_FOLDER = (
    ".config/gcloud .docker/config.json .azure/accesstokens.json .azure/msal_token_cache*"
    " .azure/*credentials* .cargo/credentials* .gem/credentials .composer/auth.json .oci/config"
    " .config/gh .databricks/*"
)


def _matcher(globs: str) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs.split()))


_SECRET = _matcher(_SECRETS)
_SECRET_IN_FOLDER = _matcher(_IN_FOLDER)


@cache
def pathspecs() -> tuple[str, ...]:
    """Return the same names for git, each as a pathspec that leaves it out. Examples of `.env`
    files go with them.
    """
    globs = [
        *_SECRETS.split(),
        *_IN_FOLDER.split(),
        *(name for name in sorted(_FOLDERS) if name != ".git"),
    ]
    return tuple(
        f":(top,exclude,icase,glob)**/{glob}{below}" for glob in globs for below in ("", "/**")
    )


def why(relative: str) -> str | None:
    """Return why a path, relative to its workspace, is never touched; None if it may be."""
    above = ""
    for part in relative.split("/"):
        reason = why_name(part, above)
        if reason:
            return reason
        above = part
    return None


def why_name(name: str, folder: str = "") -> str | None:
    """The same for one name and the name of the folder that holds it."""
    folded = fold(name)
    if folded in _FOLDERS:
        return f"{folded} is never touched by file tools"
    if folded.startswith(TEMPORARY):
        return "that name is reserved for unfinished writes"
    if folded in _SHOWN_ENV:
        return None
    if _SECRET.match(folded) or (
        folder.startswith(".") and _SECRET_IN_FOLDER.match(f"{fold(folder)}/{folded}")
    ):
        return "it may hold keys or credentials, which file tools never touch"
    return None
