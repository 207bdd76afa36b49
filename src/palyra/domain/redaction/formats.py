"""Tokens that say themselves what they are, one row per vendor format. A row is so strict that it needs no context."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palyra.domain.redaction import shapes

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

END = r"(?![A-Za-z0-9])"
ENDW = r"(?![A-Za-z0-9_\-])"

# (rule, pattern). A pattern begins where no letter precedes. Where it ends in an open class, the class is the boundary;
# `END` and `ENDW` forbid a longer token: one character too many is something else.
EXACT: tuple[tuple[str, str], ...] = (
    ("aws-key", r"(?:A3T[A-Z0-9]|AKIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + END),
    ("aws-key", r"bedrock-api-key-[A-Za-z0-9+/=]{40,}"),
    ("aws-key", r"amzn\.mws\." + UUID),
    ("aws-key", r"amzn1\.oa2-cs\.v1\.[a-f0-9]{64}"),
    ("aws-key", r"da2-[a-z0-9]{26}" + END),
    ("google", r"AIza[0-9A-Za-z_\-]{35}(?![0-9A-Za-z_])"),
    ("google", r"GOCSPX-[\w\-]{28}"),
    ("google", r"ya29\.[\w\-]{20,}"),
    ("google", r"1//0[\w\-]{40,}"),
    ("google", r"(?<!\d)\d{8,20}-[a-z0-9]{32}\.apps\.googleusercontent\.com"),
    ("github", r"gh[pousr]_[A-Za-z0-9]{36,251}" + END),
    ("github", r"ghs_\d+_eyJ[\w.\-]{20,}"),
    ("github", r"github_pat_[A-Za-z0-9_]{36,255}"),
    ("gitlab", r"gl(?:pat|dt|oas|rt|ptt|ft|imt|agent|soat|cbt|ffct|wt)-[\w\-]{20,}(?:\.[\w.]{2,20})?"),
    ("gitlab", r"GR1348941[\w\-]{20}"),
    ("slack", r"xox[a-z]-\d{5,}(?:-[A-Za-z0-9]{6,})+"),
    ("slack", r"xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{100,}"),
    ("slack", r"xox[ar]-\d-[A-Za-z0-9]{8,}-[A-Za-z0-9\-]{8,}"),
    ("slack", r"xapp-\d-[A-Z0-9]{6,}-\d{6,}-[A-Za-z0-9]{20,}"),
    ("slack", r"xox[dc]-[\w%/+\-]{40,}"),
    ("slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/]{20,}"),
    ("discord", r"discord(?:app)?\.com/api/webhooks/\d{10,}/[\w\-]{40,}"),
    ("discord", r"[MNO][A-Za-z\d_\-]{23,25}\.[\w\-]{6}\.[\w\-]{27,38}" + ENDW),
    ("teams-webhook", r"(?:outlook\.office(?:365)?\.com/webhook|webhook\.office\.com/webhookb2)/[\w@%\-]{70,}/\w+/[\w\-/]{60,}"),
    ("stripe", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{24,}"),
    ("stripe", r"whsec_[A-Za-z0-9+/=]{32,}"),
    ("sendgrid", r"SG\.[\w\-]{20,24}\.[\w\-]{40,50}"),
    ("npm", r"npm_[A-Za-z0-9]{36}" + END),
    ("pypi", r"pypi-[\w\-]{50,}"),
    ("anthropic", r"sk-ant-[a-z]{3,5}\d\d-[\w\-]{60,}"),
    ("openai", r"sk-(?:proj|svcacct|admin|service)-[\w\-]{40,}"),
    ("openai", r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20,}"),
    ("openai", r"sk-or-v1-[0-9a-f]{64}"),
    ("openai", r"sk-[0-9a-f]{32}" + ENDW),
    ("huggingface", r"(?:hf|api_org)_[A-Za-z]{34}" + END),
    ("groq", r"gsk_[A-Za-z0-9]{52}" + ENDW),
    ("model-provider", r"xai-[A-Za-z0-9]{70,}"),
    ("model-provider", r"pplx-[A-Za-z0-9]{40,}"),
    ("model-provider", r"r8_[A-Za-z0-9]{37}"),
    ("model-provider", r"csk-[a-z0-9]{48}"),
    ("model-provider", r"nvapi-[\w\-]{60,}"),
    ("model-provider", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32,}"),
    ("model-provider", r"llx-[A-Za-z0-9]{48}"),
    ("model-provider", r"pcsk_[A-Za-z0-9_]{60,}"),
    ("model-provider", r"jina_[A-Za-z0-9_]{50,}"),
    ("model-provider", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("model-provider", r"ls__[0-9a-f]{32}"),
    ("model-provider", r"e2b_[0-9a-f]{40}"),
    ("model-provider", r"fc-[0-9a-f]{32}"),
    ("model-provider", r"sk_[0-9a-f]{48}"),
    ("notion", r"ntn_\d{11}[A-Za-z0-9]{35}" + END),
    ("notion", r"secret_[A-Za-z0-9]{43}" + END),
    ("tailscale", r"tskey-[a-z]+-[A-Za-z0-9]{10,}-[A-Za-z0-9]{20,}"),
    ("onepassword", r"ops_eyJ[A-Za-z0-9+/_\-]{200,}={0,3}"),
    ("onepassword", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}" + END),
    ("sourcegraph", r"sgp_(?:local_|[0-9a-fA-F]{16}_)?[0-9a-fA-F]{40}" + END),
    ("sourcegraph", r"slk_[0-9a-f]{64}"),
    ("sourcegraph", r"sgd_[0-9a-f]{64}"),
    ("vault-token", r"hv[sbr]\.[\w\-]{24,}"),
    ("doppler", r"dp\.(?:pt|st|sa|ct|scim|audit|said)\.(?:[\w\-]{2,35}\.)?[A-Za-z0-9]{40,44}" + END),
    ("figma", r"fig[duo]r?_[\w\-]{40,}"),
    ("grafana", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("grafana", r"glc_[A-Za-z0-9+/]{32,}={0,3}"),
    ("grafana", r"eyJrIjoi[A-Za-z0-9]{60,}={0,2}"),
    ("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("shopify", r"shp(?:at|ca|pa|ss|ua|tka)_[A-Za-z0-9]{32,40}" + END),
    ("square", r"sq0[a-z]{3}-[\w\-]{22,60}"),
    ("telegram", r"(?<!\d)\d{8,10}:AA[\w\-]{33}" + ENDW),
    ("heroku", r"HRKU-[\w\-]{36,}"),
    ("planetscale", r"pscale_(?:tkn|pw|oauth|otoken)_[\w.\-]{32,}"),
    ("digitalocean", r"do[opr]_v1_[a-f0-9]{64}"),
    ("docker", r"dckr_(?:pat|oat)_[\w\-]{27,}"),
    ("databricks", r"dapi[0-9a-fA-F]{32}(?:-\d)?" + END),
    ("postman", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("newrelic", r"NR(?:AK|II|IQ|RA|AA|BR|JS|SP|AL)-[A-Za-z0-9\-_]{19,}"),
    ("newrelic", r"px-(?:api|dep)-" + UUID),
    ("mailgun", r"(?:pub)?key-[0-9a-f]{32}" + END),
    ("brevo", r"x(?:keysib|smtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("asana", r"(?<!\d)\d/\d{13,16}(?:/\d+)?:[0-9a-f]{32}" + END),
    ("atlassian", r"AT[A-Z]TT3[\w=\-]{60,}"),
    ("trello", r"ATTA[0-9a-f]{64}[0-9A-Fa-f]*"),
    ("ci", r"CCIPAT_[A-Za-z0-9]+_[0-9a-f]{40}"),
    ("ci", r"CCIPRJ_[A-Za-z0-9]+_[0-9a-f]{40}"),
    ("ci", r"bk(?:ua|aj|ct)_[0-9a-f]{40}"),
    ("contentful", r"CFPAT-[\w\-]{43}"),
    ("dynatrace", r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("facebook", r"(?<!\d)\d{15,16}(?:\||%7[Cc])[\w\-]{27,40}" + END),
    ("flutterwave", r"FLW(?:SEC|PUB)K(?:_TEST)?-[0-9A-Za-z]{12,}(?:-X)?"),
    ("frameio", r"fio-u-[\w=\-]{64}"),
    ("lob", r"(?:live|test)_(?:pub_)?[0-9a-f]{31,35}" + END),
    ("mapbox", r"[ps]k\.eyJ[\w\-]{60,}\.[\w\-]{20,}"),
    ("octopus", r"API-[A-Z0-9]{26,32}" + END),
    ("openshift", r"sha256~[\w\-]{43}"),
    ("plaid", r"access-(?:sandbox|development|production)-" + UUID),
    ("prefect", r"pn[ub]_[A-Za-z0-9]{36}" + END),
    ("pulumi", r"pul-[0-9a-f]{40}" + END),
    ("readme", r"rdme_[a-z0-9]{70}"),
    ("rubygems", r"rubygems_[0-9a-f]{48}"),
    ("sentry", r"sntry[su]_[A-Za-z0-9+/=_\-]{40,}"),
    ("supabase", r"sb[pa]_[a-z0-9]{40}" + END),
    ("shippo", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    ("sonarqube", r"sq[upa]_[0-9a-f]{40}" + END),
    ("twitch", r"live_\d{6,}_[A-Za-z0-9]{20,}"),
    ("typeform", r"tfp_[\w.=\-]{40,}"),
    ("yandex", r"AQVN[\w\-]{35,38}" + ENDW),
    ("yandex", r"t1\.[\w\-]{3,}={0,2}\.[\w\-]{86}={0,2}"),
    ("yandex", r"y[0-3]_[\w\-]{55,}"),
    ("adobe", r"p8e-[\w\-]{32}" + ENDW),
    ("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("clojars", r"CLOJARS_[a-z0-9]{60}"),
    ("cloudflare", r"cf(?:at|ut|k)_[A-Za-z0-9]{40}[0-9a-f]{8}" + END),
    ("cloudflare", r"v1\.0-[0-9a-f]{24,}-[0-9a-f]{100,}(?:-[0-9a-f]{20,})?"),
    ("duffel", r"duffel_(?:test|live)_[\w=\-]{43}"),
    ("deno", r"dd[pw]_[A-Za-z0-9]{36}" + END),
    ("vercel", r"vc[pirak]_[A-Za-z0-9]{24,}"),
    ("netlify", r"nf[pcoub]_[A-Za-z0-9]{36,}"),
    ("fly", r"fo1_[\w\-]{43}"),
    ("fly", r"fm[12][ar]?_[A-Za-z0-9+/=,_\-]{100,}"),
    ("posthog", r"ph[acxsre]_[A-Za-z0-9]{40,}"),
    ("dependency-track", r"odt_[A-Za-z0-9]{32,}(?:_[A-Za-z0-9]{20,})?"),
    ("salesforce", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,}"),
    ("settlemint", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}" + END),
    ("intra42", r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    ("teamwork", r"tkn\.v1_[A-Za-z0-9+/=]{60,}"),
    ("truenas", r"(?<!\d)\d{1,3}-[A-Za-z0-9]{64}" + ENDW),
    ("zoho", r"1000\.[0-9a-f]{32}\.[0-9a-f]{32}" + END),
    ("zuplo", r"zpka_\w{32}_\w{8}"),
    ("infracost", r"(?<![\w.])ico-[A-Za-z0-9]{32}" + END),
    ("harness", r"[ps]at\.[\w\-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    ("hubspot", r"pat-(?:na|eu)\d-" + UUID),
    ("launchdarkly", r"(?:sdk|api|mob)-" + UUID),
    ("endor", r"endr\+[A-Za-z0-9\-]{16}"),
    ("openvsx", r"ovsx(?:p|at)_" + UUID),
    ("defined-networking", r"dnkey-[\w=\-]{26}-[\w=\-]{52}"),
    ("razorpay", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    ("braintree", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}"),
    ("dropbox", r"sl\.(?:u\.)?[\w\-]{120,}"),
    ("aiven", r"AVNS_[\w\-]{19}"),
    ("astra", r"AstraCS:\w{24}:[0-9a-f]{64}"),
    ("resend", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{22,}"),
    ("samsara", r"samsara_api_[A-Za-z0-9]{30}"),
    ("scalingo", r"tk-us-[\w\-]{48}"),
    ("wakatime", r"waka_" + UUID),
    ("xata", r"xau_[A-Za-z0-9]{40,}"),
    ("beamer", r"b_[a-z0-9=_\-]{44}" + ENDW),
    ("authress", r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9\-]{10,32}\.[a-z0-9+/_=\-]{30,120}"),
    ("unkey", r"unkey_[A-Za-z0-9]{22,}"),
    ("mergify", r"mergify_application_key_[A-Za-z0-9]{20,}"),
    ("persona", r"persona_(?:sandbox|production)_" + UUID),
    ("jira", r"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4}O[g-v][A-Za-z0-9+/]{26}"),
    ("jwt", r"(?<![\w\-])ey[A-Za-z0-9_\-]{10,}\.ey[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]{6,}){0,3}(?:\.(?![A-Za-z0-9]))?"),
    ("jwt", r"(?<![\w\-])eyJ[A-Za-z0-9_\-]{14,}\.[A-Za-z0-9_\-]{0,}(?:\.[A-Za-z0-9_\-]{10,}){3}"),
    ("password-hash", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"),
    ("password-hash", r"\$[156y]\$(?:rounds=\d+\$)?[./A-Za-z0-9$]{4,40}\$[./A-Za-z0-9]{22,86}" + END),
    ("password-hash", r"\$argon2(?:id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}"),
)

# Letters and digits only, behind a short prefix: such a thing also turns up inside base64, so nothing of base64 may precede.
WALLED: tuple[tuple[str, str], ...] = (
    ("aws-key", r"ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    ("google", r"AAAA[A-Za-z0-9_\-]{7}:[A-Za-z0-9_\-]{140}"),
    ("twilio", r"(?:AC|SK|AP)[0-9a-f]{32}" + END),
    ("square", r"EAAA[\w\-]{60}" + ENDW),
    ("atlassian", r"ATBB[A-Za-z0-9]{32}" + END),
    ("easypost", r"EZ[AT]K[A-Za-z0-9]{54}" + END),
    ("facebook", r"EAA[A-Z][A-Za-z0-9]{80,}"),
    ("nuget", r"oy2[a-z0-9]{43}" + END),
    ("alibaba", r"LTAI[A-Za-z0-9]{12,24}" + END),
    ("artifactory", r"AKC[A-Za-z0-9]{60,}" + END),
    ("artifactory", r"cmVmd[A-Za-z0-9]{59}" + END),
    ("clickhouse", r"4b1d[A-Za-z0-9]{38}" + END),
    ("crates", r"cio[A-Za-z0-9]{32}" + END),
)

# Rows whose body could be words: it must also look drawn at random.
RANDOM: tuple[tuple[str, str], ...] = (
    ("stripe", r"pk_(?:live|test)_[A-Za-z0-9]{24,}"),
    ("vault-token", r"[sbr]\.[A-Za-z0-9]{24,26}" + END),
    ("resend", r"re_[A-Za-z0-9_]{30,40}" + END),
    # Hex in both cases is nobody's digest.
    ("hex-token", r"(?<=[:=\"' ])(?=[0-9a-f]*[A-F])(?=[0-9A-F]*[a-f])[0-9a-fA-F]{40,}" + END),
    ("model-provider", r"fw_[A-Za-z0-9]{24}" + END),
)

# Rows known by something in their middle or at their end: (rule, literals, pattern). Looked for around the literal only,
# because a pattern that opens with a wide class would be tried at every character.
ANCHORED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("azure", ("7Q~", "8Q~"), r"(?<![A-Za-z0-9_~.\-])[A-Za-z0-9_~.\-]{3}[78]Q~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~\-])"),
    ("azure", ("JQQJ99",), r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}" + END),
    ("azure", ("AZDO",), r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}" + END),
    ("azure", ("+ASt", "+AMC", "+ABa", "ACDb"), r"[A-Za-z0-9/+]{76}(?:\+ASt|\+AMC|\+ABa|ACDb)[A-Za-z0-9/+]{5}[AQgw]=="),
    ("azure", ("AIoT", "+ASb", "+AEh", "+ARm", "AzCa"), r"[A-Za-z0-9/+]{33}(?:AIoT|\+ASb|\+AEh|\+ARm|AzCa)[A-P][A-Za-z0-9/+]{5}="),
    ("azure", ("AzFu",), r"[\w/+\-]{44}AzFu[\w/+\-]{5}[AQgw]=="),
    ("azure", ("AzSe",), r"[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}" + END),
    ("azure", ("+ACR",), r"[A-Za-z0-9/+]{42}\+ACR[A-D][A-Za-z0-9]{5}"),
    ("newrelic", ("NRAL",), r"(?<![A-Za-z0-9])[A-Za-z0-9]{36}NRAL" + END),
    ("mailchimp", ("-us",), r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}" + END),
    ("maxmind", ("_mmk",), r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("rapidapi", ("msh",), r"[a-z0-9]{10}msh[a-z0-9]{15}p1[a-z0-9]{6}jsn[a-z0-9]{12}"),
    ("terraform", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{60,}"),
)
_REACH = 96

# Keys that vendors publish with their own samples (AWS documentation; Firebase SDKs, as digests so that this file holds no key).
_EXAMPLE = re.compile(r"A[KS]IA[A-Z0-9]{9}EXAMPLE")
_PUBLISHED = frozenset(
    {
        "2037abcaffb2",
        "27a9a42931df",
        "37f8f09bdf12",
        "3a8b61d0f636",
        "3f370c9dd822",
        "49f777db995e",
        "4c98242dcadc",
        "8731261cb72d",
        "a19f89ab3555",
        "a6c814bc555a",
        "dc0fcf046c61",
        "e4a5542bb7fd",
        "ea9bb1082cf9",
        "eb540d2b6ee2",
        "f56e323494a6",
    }
)


class Hit(NamedTuple):
    start: int
    end: int
    rule: str


_FIRST = re.compile(r"[A-Za-z0-9](?![?*{])")


def _join(rows: tuple[tuple[str, str], ...], boundary: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """One pattern for all rows, grouped by first character so that most positions fail at once; group names map back to rules."""
    names = {f"g{i}": rule for i, (rule, _) in enumerate(rows)}
    heads: dict[str, list[str]] = {}
    for i, (_, pattern) in enumerate(rows):
        first = _FIRST.match(pattern)
        head = first[0] if first else ""
        heads.setdefault(head, []).append(f"(?P<g{i}>{pattern[1:] if head else pattern})")
    body = "|".join(f"{head}(?:{'|'.join(tails)})" for head, tails in heads.items())
    return re.compile(rf"{boundary}(?:{body})"), names


_exact, _exact_names = _join(EXACT, "(?<![A-Za-z])")
_walled, _walled_names = _join(WALLED, "(?<![A-Za-z0-9+/])")
_random, _random_names = _join(RANDOM, "(?<![A-Za-z])")
_anchored = tuple((literal, rule, re.compile(pattern)) for rule, literals, pattern in ANCHORED for literal in literals)
# Every row needs such a run, so text without one is done.
_RUN = re.compile(r"[^\s\"'`<>(){}\[\],;]{16,}")
_SHORT = 4096
# Small letters alone are a name in code, a path, a rule of dashes; nothing drawn or encoded lacks both capitals and digits.
_DULL = re.compile(r"[a-z_.\-/=:#*+&|~!?@$%\\]+")


def runs(text: str) -> list[tuple[int, int]]:
    """The stretches of `text` where a token may stand."""
    if len(text) < _SHORT and max(map(len, text.split()), default=0) < 16:
        return []
    return [found.span() for found in _RUN.finditer(text) if not _DULL.fullmatch(found[0])]


def find(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[Hit]:
    for start, end in runs:
        for pattern, names in ((_exact, _exact_names), (_walled, _walled_names)):
            for found in pattern.finditer(text, start, end):
                rule = names[found.lastgroup or ""]
                if not _is_sample(found[0], rule):
                    yield Hit(*found.span(), rule)
        for found in _random.finditer(text, start, end):
            if shapes.is_random(found[0]):
                yield Hit(*found.span(), _random_names[found.lastgroup or ""])
        yield from _around(text, start, end)


def _around(text: str, start: int, end: int) -> Iterator[Hit]:
    if end - start < 32:
        return
    for literal, rule, pattern in _anchored:
        at = text.find(literal, start, end)
        while at >= 0:
            found = pattern.search(text, max(start, at - _REACH), min(end, at + 2 * _REACH))
            if found:
                yield Hit(*found.span(), rule)
            # A match around any occurrence before this point would have been found.
            at = text.find(literal, found.end() if found else at + _REACH, end)


def _is_sample(token: str, rule: str) -> bool:
    """Whether the token was never given to anybody: a form to fill in, or a key printed in documentation."""
    if rule == "google" and hashlib.sha256(token.encode()).hexdigest()[:12] in _PUBLISHED:
        return True
    return _EXAMPLE.fullmatch(token) is not None or (shapes.is_filler(token) and not token.startswith("hooks."))
