"""More facts about tokens in short form, one per word: a prefix and `{alphabet, length}` for what
is drawn behind it.

Alphabets: w letters and digits, b the same with - and _, B base64, h hex, x hex in either case, l
small letters and digits, u capitals and digits, d digits, s base58. Lengths: 40 exactly, 20-40
between, 40+ at least. {U} is a UUID. Where no length is open, the token must end.
"""

import re
from collections.abc import Iterator

from palyra.core.redaction.vendors import END, ENDW, UUID

_CLASSES = {
    "w": "[A-Za-z0-9]",
    "b": r"[A-Za-z0-9_\-]",
    "B": "[A-Za-z0-9+/]",
    "h": "[0-9a-f]",
    "x": "[0-9a-fA-F]",
    "l": "[a-z0-9]",
    "u": "[A-Z0-9]",
    "d": "[0-9]",
    "s": "[1-9A-HJ-NP-Za-km-z]",
}
_PART = re.compile(r"\{(?:(U)|([wbBhxluds])(\d+)(?:-(\d+)|(\+))?)\}")

# vendor: tokens
FORMS = r"""
aws: IQoJb3JpZ2luX2Vj{B120+} FwoGZXIvYXdz{B100+} FQoGZXIvYXdz{B100+}
google: GOOG1E{u55-57} 4/0A{b60+}
gitlab: glcbt-{h1-5}_{b20} glrtr-{b20-60} glsa-{b20-60} glptt-{h40} gloas-{h64} glimt-{b25} glagent-{b50}
slack: xwfp-{b40+} xoxe.xoxb-1-{w160-180} xoxe-1-{w140-160}
discord: mfa.{b84}
mailgun: {h32}-{h8}-{h8}
mandrill: md-{b22}
mailersend: mlsn.{h64}
klaviyo: pk_{h34}
courier: pk_prod_{u28} pk_test_{u28}
smtp2go: api-{u32}
packagist: packagist_{b40+} packagist_ack_{h28-32} packagist_out_{h68} conductor_{w40+}
anaconda: ax-{b36+}
jina: jina_{h32}{b24-40} jina_{b50+}
kagi: KG_{b40+}
jsr: jsrd_{w40+} jsrp_{w40+}
scaleway: SCW{u17}
render: rnd_{w28-40}
neon: napi_{w60-70}
supabase: sb_secret_{b31+} sbp_oauth_{h40}
cockroach: CCDB1_{w22}_{w40}
mongodb: mdb_sa_sk_{b40} mdb_sa_id_{h24}
elastic: essu_{B60+}
dbt: dbtc_{b40+} dbtu_{b40+} dbts_{b40+}
chroma: ck-{w44}
honeycomb: hcaik_{l58} hcbik_{l58} hcxik_{l58} hcamk_{l58}
honeybadger: hbp_{w36}
axiom: xaat-{U} xapt-{U} xait-{U}
pagerduty: pdus+_{b20+} pdeu+_{b20+}
coralogix: cxtp_{w30} cxth_{w30} cxup_{w30} cxol_{w30} cxoc_{w30}
woocommerce: ck_{h40} cs_{h40}
adyen: AQE{b2}hmf{b80+} AQE{b2}hmf{B80+}
checkout: sk_sbox_{l26+} pk_sbox_{l26+}
gocardless: live_{b40} sandbox_{b40}
paddle: pdl_live_apikey_{l26}_{w22}_{w3} pdl_sdbx_apikey_{l26}_{w22}_{w3} pdl_ntfset_{l26}_{b30+}
polar: polar_oat_{b20+} polar_pat_{b20+} polar_at_{b20+} polar_rt_{b20+} polar_whs_{b20+}
stripe: ek_live_{w24+} ek_test_{w24+} sk_org_{w24+}
alchemy: alcht_{w30}
matrix: syt_{b2+}_{w20}_{w6} mat_{w30-45} mct_{w30-45}
openai: sess-{w40} sk-{w48} sk-None-{b40+} ek_{h32+}
anthropic: sk-ant-{b80+}
langfuse: sk-lf-{U} pk-lf-{U}
wandb: wandb_v1_{b40+}
together: tgp_v1_{b43}
modal: ak-{w22} as-{w22}
runpod: rpa_{u40+}
voyage: pa-{b43}
browserbase: bb_live_{b27} bb_test_{b27}
cursor: key_{h64} crsr_{h64}
helicone: sk-helicone-{b24+}
friendli: flp_{w46+}
zhipu: {h32}.{w16}
volcengine: AKLT{b40-250}
openrouter: sk-or-{b40+}
replicate: r8_{w37-40}
nvidia: nvapi-{b60+} ngc_{w60+}
clickup: pk_{d6-9}_{u32}
intercom: dG9r{B50+}
ghost: {h24}:{h64}
stytch: secret-live-{b36}= secret-test-{b36}=
jumpcloud: jca_{w36}
bitwarden: 0.{U}.{w30}:{B22}==
infisical: st.{h24}.{h32+}.{h32}
ngrok: 2{w26}_{w20-22} ak_2{w26} cr_2{w26}
akamai: akab-{l16}-{l16}
snyk: snyk_uat.{h8}.{b60+} snyk_sat.{h8}.{b60+}
teamcity: eyJ0eXAiOiAiVENWMiJ9.{b36+}.{b36+}
jenkins: 11{h32}
scalr: at-{b40+}
statsig: secret-{w40+} console-{w40+}
optimizely: 2:{b43}
unleash: default:development.{h50-64} default:production.{h50-64} *:*.{h50-64} *:development.{h50-64} *:production.{h50-64}
gitbook: gb_api_{w40}
socket: sktsec_{b40+}
phylum: ph0_{b40+}
tencent: AKID{w32-36}
baidu: bce-v3/ALTAK-{w21}/{h40}
nylas: nyk_v0_{w60+}
telnyx: KEY{u32}_{w22}
linkedin: WPL_AP1.{b16}.{w6}
instagram: IGQV{b100+} IGQW{b100+} IGAA{b100+}
pinterest: pina_{b20+} pinc_{b20+}
tiktok: act.{b50+}
weblate: wlp_{w36} wlu_{w36}
aikido: AIK_CLIENT_{w24} AIK_SECRET_{w40+}
cloudsmith: csa_{h30}{w6}
devin: cog_{l52} apk_user_{B120+} apk_{B80+}
proof: prf_{b20+}
workato: wrka-eyJ{b8+}.{b16+}.{b64+}
postman: PMAT-{w26}
bitbucket: BBDC-{B32+}
wakatime: waka_{l36-64}
lichess: lip_{w16-24} lio_{w16-24}
riot: RGAPI-{U}
modrinth: mrp_{w60} mra_{w60} mro_{w60}
adafruit: aio_{w28}
ubidots: BBFF-{w30} BBUS-{w30}
nightfall: NF-{w32}
pubnub: sec-c-{w48} sub-c-{U} pub-c-{U}
onesignal: os_v2_app_{l90+} os_v2_org_{l90+}
firebase: APA91b{b120+}
chromatic: chpt_{h12-40}
dnsimple: dnsimple_u_{w32+} dnsimple_a_{w32+} dnsimple_o_{w32+}
porkbun: pk1_{h64} sk1_{h64}
keygen: admin-{h64}v3 prod-{h64}v3 env-{h64}v3 user-{h64}v3 activ-{h64}v3
convertkit: kit_{h32}
onfido: api_live.{b11}.{b32} api_live.{b20-80} api_sandbox.{b11}.{b32} api_live_us.{b11}.{b32} api_live_us.{b20-80}
deepl: {U}:fx
apify: apify_api_{w34-40}
retool: retool_{l26} retool_wk_{l26} retool_01{l24}
n8n: n8n_api_{w40+}
paseto: v1.local.{b40+} v2.local.{b40+} v3.local.{b40+} v4.local.{b40+} v2.public.{b60+} v4.public.{b60+}
macaroon: MDAx{b80+} AgEU{b80+}
nostr: nsec1{l58}
sui: suiprivkey1{l58}
bitcoin: xprv{s107} yprv{s107} zprv{s107} tprv{s107}
tezos: edsk{s50} edsk{s94}
minisign: RWRTY0Iy{B130+}
sops: AGE-SECRET-KEY-PQ-1{u58+}
django: django-insecure-{b30+}
nuget: oy2{l43}
gitea: gta_{h40} gto_{b40+}
circleci: CCIPAT_{w22}_{h40}
depot: depot_{w40+} depot_project_{h60+}
trigger: tr_prod_{w20+} tr_dev_{w20+} tr_stg_{w20+}
inngest: signkey-prod-{h32+} signkey-test-{h32+} signkey-branch-{h32+}
liveblocks: sk_dev_{b60+} sk_prod_{b60+}
convex: prod:{b4-30}|{B40+} dev:{b4-30}|{B40+}
dopplercli: dp.st.prd.{w43}
svix: whsk_{B32+} testsk_{B32+}
dub: dub_{w24}
cal: cal_live_{h32} cal_test_{h32}
val: vtwn_{b20+}
tigris: tid_{w30+} tsec_{b40+}
buildkite: bkui_{h40} bkpt_{h40} bkpi_{h40}
hcp: hcp.{b40+}
rootly: rootly_{h64}
statuspage: OAuth-{U}
thirdweb: tw_{b60+}
anyscale: esecret_{l26-40}
vercel: vercel_blob_rw_{w16}_{w24+}
upcloud: ucat_{u26+}
exoscale: EXO{w24-30}
appveyor: v2.{l20}
checkly: cu_{h32}
segment: sgp_{w64}
flagsmith: ser.{w22}
configcat: configcat-sdk-1/{b22}/{b22}
devcycle: dvc_server_{b20+} dvc_mobile_{b20+} dvc_client_{b20+}
klarna: klarna_live_api_{B40+} klarna_test_api_{B40+}
xendit: xnd_production_{w30+} xnd_development_{w30+} xnd_public_production_{w30+}
midtrans: Mid-server-{b20+} SB-Mid-server-{b20+}
omise: skey_live_{l19} skey_test_{l19} skey_{l19}
mercadopago: APP_USR-{d10-20}-{d6}-{h32}-{d5-12} TEST-{d10-20}-{d6}-{h32}-{d5-12}
iex: Tsk_{h32} Tpk_{h32} sk_{h32} pk_{h32}
ramp: ramp_id_{w30+} ramp_sec_{w30+}
brex: bxt_{w36+}
confluent: cflt{B60+}
tinybird: p.eyJ{b20+}.{b20+}
netbird: nbp_{w36}
kong: kpat_{w40+} spat_{w40+}
dashlane: dls_{u8+}_{w30+}
ebay: PRD-{h12}-{h4}-{h4}-{h4}-{h4} SBX-{h12}-{h4}-{h4}-{h4}-{h4}
foursquare: fsq3{b44}
fal: {U}:{h32}
cartesia: sk_car_{b20+}
mem0: m0-{w38-44}
letta: sk-let-{w40+}
nomic: nk-{b43}
predibase: pb_{b22}
upstage: up_{w28-34}
promptlayer: pl_{h32}
openpipe: opk_{h40+}
parasail: psk-{b24+}
mixedbread: emb_{h48} mxb_{w30+}
guilded: gapi_{B40+}==
vk: vk1.a.{b80+}
mercury: secret-token:mercury_production_{b30+} mercury_production_{b40+}
secret-token: secret-token:{b24+}
backblaze: K00{d1}{B27}
luma: luma-{U}-{U}
pydantic: pylf_v1_{l2}_{w40+} pylf_v2_{l2}_{w40+}
mintlify: mint_{w20+} mint_dsc_{w20+}
stackhawk: hawk.{b20}.{b20}
twelvelabs: tlk_{u40+}
plane: plane_api_{h32}
appwrite: standard_{h240+} organization_{h240+}
tolgee: tgpak_{l40+} tgpat_{l40+}
deepsource: dsp_{h40} dsnp_{h40}
nocodb: nc_pat_{b40+}
teable: teable_{w10+}_{b30+}
dify: app-{w24} dataset-{w24}
fastgpt: fastgpt-{w40+}
coze: pat_{w64} cztei_{w60+}
brave: BSA{b24-40}
daytona: dtn_{h64}
ampcode: sgamp_user_{u26}_{h64}
factory: fk-{b40+}
windsurf: sk-ws-{b40+}
contentstack: blt{h16} cs{h40}
rancher: token-{l5}:{l54} kubeconfig-u-{l5-10}:{l54}
k3s: K10{h64}::server:{h32} K10{h64}::node:{h32}
swarm: SWMTKN-1-{l50}-{l25}
google: AQ.Ab{b40+}
wix: IST.eyJ{b20+}.{b20+}.{b20+}
salesforce: 3MVG{b70+} 3MVG{b8-60}.{b16+}
linear: lin_wh_{w40+}
miro: eyJtaXJvLm9yaWdpbiI6{b20+}
transifex: 1/{h40}
dingtalk: SEC{h64}
alibaba: STS.{w20+}
digitalocean: DO00{u16}
kaggle: KGAT_{h32}
databricks: dose{h32}
stellar: S{u55}
moralis: eyJub25jZSI6I{b60+}
"""  # noqa: E501

# Letters and digits behind a short prefix: nothing of base64 may stand in front.
_WALLED = r"""
square: EAAAE{b59}
linkedin: AQV{b150+} AQU{b150+} AQX{b150+}
sanity: sk{w120+}
outlook: EwB{B400+} EwC{B400+}
"""


def exact() -> Iterator[tuple[str, str]]:
    return _parsed(FORMS)


def walled() -> Iterator[tuple[str, str]]:
    return _parsed(_WALLED)


def _parsed(table: str) -> Iterator[tuple[str, str]]:
    for line in table.split("\n"):
        rule, _, tokens = line.partition(": ")
        for token in tokens.split():
            yield rule, _pattern(token)


def _pattern(token: str) -> str:
    """The pattern of one row: what stands between the parts is meant literally."""
    parts: list[str] = []
    at = 0
    for part in _PART.finditer(token):
        parts += [re.escape(token[at : part.start()]), _drawn(part)]
        at = part.end()
    pattern = "".join(parts) + re.escape(token[at:])
    return (
        pattern
        if token.endswith("+}")
        else pattern + (ENDW if token.rpartition("{")[2][0] == "b" else END)
    )


def _drawn(part: re.Match[str]) -> str:
    if part[1]:
        return UUID
    high = "," if part[5] else f",{part[4]}" if part[4] else ""
    return f"{_CLASSES[part[2]]}{{{part[3]}{high}}}"
