"""Values that look drawn and stand right behind the name of a service: `shodan init k3J…`,
`algoliasearch('APP', '9f1c…')`.

A digest or a UUID says nothing by itself. Behind a service's name, with nothing between but words
that lead to a credential, it is one.
"""

import re
from collections.abc import Iterator, Sequence

from palyra.core.redaction import shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.work import Work

# Names that mean nothing else. A service whose name is an ordinary word, or near which digests
# stand (git hosts), is not here.
_NAMES = """
ably abstractapi abuseipdb activecampaign adafruit agora ahrefs airbrake airtable aiven akamai alchemy algolia alibaba alienvault
alphavantage amadeus amplitude anthropic anypoint apiflash apify apilayer apollo appcenter appcues appfollow appsflyer
appveyor artifactory asana assemblyai atlassian auth0 authy aviationstack axonaut aylien backblaze baidu bamboohr baremetrics
baseten beebole besnappy binance bingmaps bitbucket bitfinex bitly bitmex bitrise bittrex blockchair bombora braintree
branchio brandfetch brevo browserbase browserstack bscscan bugsnag buildkite buttercms caflou calendarific calendly campayn
cannyio capsulecrm captaindata censys cerebras chartmogul checkr circleci ciscomeraki clarifai clearbit clickhelp clickhouse
clicksend clickup cliengo clinchpad clockify clockwork closecrm cloudconvert cloudelements cloudflare cloudimage cloudinary
cloudmersive cloudplan cloudsmith cloverly cloze codacy codeclimate codecov codefresh codemagic codequiry cohere coinapi coinbase
coinlayer coinlib coinmarketcap coinstats commercejs confluent contentful contentstack conversiontools convertapi convertkit
coralogix couchbase countrylayer coveralls crowdin crowdstrike cryptocompare currencyfreaks currencylayer currencyscoop
currentsapi customerguru customerio databento databricks datadog datadoghq datafire dataforseo datagov datarobot deepai
deepgram deepinfra deepl deepseek delighted desktime detectify detectlanguage dfuse diffbot diggernaut digicert digitalocean
dnscheck docparser documo docusign doppler dotmailer dovico dropbox duply dwolla dynalist dynatrace easyinsight ebay
ecostruxure edamam edenai eightxeight elasticemail elevenlabs enablex etherscan etsy eventbrite everhour exchangerate
exportsdk facebook factset fastforex fastly fastspring faunadb fibery figma fileio finage finicity finnhub fireworksai fixerio
flatio fleetbase flickr flightapi flightlabs flightstats flowflu flutterwave fmfw foursquare freshbooks freshdesk freshsales
fullstory fxmarket gemini gengo geoapify geocodify geocodio geoipify getemail getgeoapi getgist getresponse getsandbox giphy
gitter glassnode gocanvas gocardless goodday grafana graphcms graphhopper groq gumroad gyazo happyscribe harvestapp hellosign
helpcrunch helpscout hereapi heroku hexomatic honeybadger honeycomb hotjar hubspot huggingface hunterio hypertrack ibmcloud
iconfinder iexapis iexcloud imagga imgbb influxdb infura instabot instagram instamojo intercom interseller intrinio
invoiceocean ipapi ipdata ipgeolocation ipify ipinfo ipinfodb ipquality ipstack iterable jotform jumpcloud juro karmacrm
keenio kickbox klaviyo klipfolio knapsackpro kontent kraken kucoin kylas langfuse langsmith languagelayer lastfm launchdarkly
leadfeeder lemlist lemonsqueezy lendflow lessannoyingcrm lexigram linemessaging linkedin linode liveagent livekit livestorm
loadmill locationiq loggly loginradius logzio lokalise lunchmoney luno madkudu magicbell mailboxlayer mailchimp mailerlite
mailersend mailgun mailjet mailmodo mailsac mailtrap mandrill mapbox mapquest marketstack mattermost mavenlink maxmind
meaningcloud mediastack meistertask meraki mesibo messagebird metaapi metabase metrilo microsoftteams mindmeister mistral
mixcloud mixmax mixpanel mockaroo mongodb monkeylearn moonclerk moosend moralis mrticktock muxcom myfreshworks myintervals
nethunt netlify neutrinoapi neverbounce newrelic newsapi newscatcher nexmo nexmoapi nftport ngrok nicereply nightfall
noticeable notion nozbeteams numverify nutritionix nvidia nylas nytimes oanda okta omnisend onedesk onelogin onepagecrm
onesignal onfido onwater oopspam openai opencage opencagedata opengraphr openrouter opensea openuv openweather openweathermap
opsgenie optimizely overloop owlbot packagecloud packagist paddle pagerduty pandadoc pandascore papyrs paralleldots parsehub
parseur partnerstack pastebin paydirt paymo paymongo paypal paystack pdflayer pdfshift peopledatalabs pepipost percy
perplexity pinata pinboard pinecone pingdom pinterest pipedream pipedrive pivotaltracker pixabay plaid planetscale
planviewleankit planyo plivo podio pollsapi poloniex polygonio polygonscan positionstack postageapi posthog postman postmark
powrbot prefect prismic privacycom prodpad profitwell prospectcrm protocolsio proxycrawl pubnub pulumi purestake pushbullet
pusher pushover qase qualaroo qualys qubole quickbooks quickmetrics rabbitmq railz rapid7 rapidapi rawg razorpay readthedocs
rebrandly recaptcha recurly redislabs remotebg repairshopr replicate replyio requestfinance restpack restpackhtml revai
revampcrm ringcentral ritekit rocketreach rollbar route4me rownd rubygems runrunit salesblink salescookie salesflare
salesforce salesloft salesmate satismeter saucelabs scalegrid scaleway scrapeowl scraperapi scraperbox scraperstack scrapfly
scrapingant scrapingbee screenshotapi screenshotlayer securitytrails segmentio selectpdf sendbird sendgrid sendinblue sentry
serpapi serphouse serpstack seventimer sherpadesk shipday shippo shodan shopify shotstack shutterstock signable signalwire
signaturit signupgenius simfin simplesat simplynoted simvoly sinch sirv siteleaf skrapp skybiometry slackapi smartsheet
smartystreets smooch snipcart snowflake snyk socrata sonarcloud sonarqube sourcegraph sparkpost splunk spoonacular sportradar
sportsmonk spotify spotipy squarespace squareup sslmate statsig statuscake statuspage stitchdata stockdata storecove
stormboard stormglass storyblok storychief strava stripe stripo stytch sugester sumologic supabase supernotes surveyanyplace
surveybot surveymonkey surveysparrow swiftype tailscale tallyfy tatum tavily taxjar teamgate teamwork telesign teletype telnyx
tencent textmagic theoddsapi thinkific thousandeyes ticketmaster ticktick tiingo timecamp tineswebhook todoist tokeet
tomorrowio tomtom tradier transferwise travelpayouts travisci trello trelloapikey tripadvisor truenas turnitin twelvedata
twilio twitch twitter tyntec typeform typesense typetalk ubidots unifyid unplugg unsplash upcdatabase uplead uploadcare uproc
uptimerobot upwave urlscan userflow userstack vagrantcloud vatlayer vbout vercel verimail veriphone viber toggl versioneye viewneo
virustotal visualcrossing voiceflow voicegain vonage vouchery vultr vyte walkscore wandb weatherapi weatherbit weatherstack
webex webflow weightsandbiases wepay whoxy wistia wolfram wolframalpha workable workato worksnaps workstack worldcoinindex
worldweather worldweatheronline wrike xata xero yandex yelp yelpapi youneedabudget youtrack youtube zapier zendesk zenkit
zenrows zenscrape zenserp zeplin zerobounce zerotier zipapi zipbooks zipcodeapi zoho zoom zoominfo zulip zuora
"""  # noqa: E501
_SERVICES = frozenset(_NAMES.split())
_HEAD = 5
# Longer names count with something glued to them: algoliasearch, mailjetClient.
_GLUED: dict[str, tuple[str, ...]] = {}
for _name in sorted(_SERVICES):
    if len(_name) > _HEAD:
        _GLUED[_name[:_HEAD]] = (*_GLUED.get(_name[:_HEAD], ()), _name)

# Words between a service and its credential.
_LEADING_WORDS = """
access account add admin an api apikey app apply as auth authenticate authtoken bearer by cert certificate cli client code com
config configure connect const consumer create credential credentials dev developer env export for from gateway getinstance
header in init initialize integration integrator is key let license live load login master new node oauth of org our pass
password prod production project rest routing sdk search secret send service set setapikey setup shared sign signing sk start
storage subscription test the to token use user uses using value var vendor via with write x your
"""  # noqa: E501
_LEADING = frozenset(_LEADING_WORDS.split())
# x_api = "…", x.sk: a name that says the same without the word for it.
_TELLING = re.compile(
    r"[a-z0-9][_\-.](?:api|sk|ak|creds?)[\"'\]]{0,2}[ \t]{0,4}[:=][ \t]{0,4}[\"'`]?$"
)
# Client("…"), set_access_token("…", "…"): what is called takes a credential.
_TAKING = re.compile(
    r"(?:client|login|connect|credentials?|authenticate|auth|oauth|token|api_?key|secret|sdk|signin|basicauth)\(\s{0,8}[bu]?[\"'`]$"
)
_LOADING = re.compile(
    r"(?:\.load|\.init|initialize|configure|\.start|\.setup|\.api)\(\s{0,8}[\"'`]$"
)
_WORD = re.compile(r"[a-z0-9]+")
_VALUE = re.compile(r"(?=\D{0,160}\d)[A-Za-z0-9_\-.]{16,160}={0,2}")
_PUBLIC = re.compile(
    r"(?:^|[_\-."
    r" ])(?:ids?|public|publishable|pub|ur[il]|host|name|email|user(?:name)?|version|region|sid)"
    r"[\"']?[\])]?\s*[:=,(]*\s*[\"'`]?$"
)
# What stands before the second of two arguments.
_ARGUMENT = re.compile(r"[bu]?[\"'`][^\"'`\s]{1,80}[\"'`]\s{0,4},\s{0,4}([\"'`]?)$")
_COMMANDS = frozenset(("login", "auth", "authtoken", "authenticate"))  # tool login 8ec8d7…
_QUOTES = ("'", '"', "`")
_REACH = 96
_OPENERS = frozenset("\"'`=:( \t,")
_MOST_BETWEEN = 5
_LONG = 24
_NEXT_ARGUMENT = 8


def find(
    text: str, lower: str, runs: Sequence[tuple[int, int]], work: Work
) -> Iterator[FormatMatch]:
    """`runs` are stretches of the text without blanks, digests and UUIDs among them. The same value
    is judged once.
    """
    last = -_REACH
    for start, end in runs:
        at = max(text.rfind("=", start, end - 16), text.rfind(":", start, end - 16)) + 1 or start
        value = _VALUE.fullmatch(text, at, end)
        if value is None or (at and text[at - 1] not in _OPENERS):
            continue
        low = max(0, at - _REACH)
        again = (
            at - last <= _NEXT_ARGUMENT and "\n" not in text[last:at]
        )  # one more argument of the same call
        if (
            again or _is_led_to(lower[max(low, lower.rfind("\n", low, at) + 1) : at], value[0])
        ) and _judged(value[0], work):
            yield FormatMatch(at, end, "service")
            last = end


def _judged(value: str, work: Work) -> bool:
    verdict = work.judged.get((value,))
    if verdict is None:
        verdict = work.judged[value,] = _is_drawn(value)
    return verdict


def _is_drawn(value: str) -> bool:
    if shapes.UUID.fullmatch(value):
        return True
    return (
        shapes.is_random(value, 16)
        and shapes.has_digit_and_letter(value)
        and not shapes.is_hashed(value)
        and not shapes.is_fluent(value)
        and not shapes.is_masked(value)
    )


def _is_led_to(before: str, value: str) -> bool:
    """Whether a service's name stands in `before`, and only words that lead to a credential behind
    it, or a call that takes one.
    """
    if _PUBLIC.search(before) or "::" in before:
        return False  # what is meant to be seen, or the name of a type
    if _TELLING.search(before):
        return True
    before = _ARGUMENT.sub(r"\1", before)
    if before[-1:] in _QUOTES and (
        _TAKING.search(before) or (_LOADING.search(before) and _is_mixed(value))
    ):
        return not shapes.UUID.fullmatch(value)
    words = _WORD.findall(before)[::-1]
    if (
        words
        and words[0] in _COMMANDS
        and before[-1:] == " "
        and len(value) >= _LONG
        and not shapes.UUID.fullmatch(value)
    ):
        return True
    for at, word in enumerate(words[: _MOST_BETWEEN + 1]):
        if word in _SERVICES:
            return True
        if glued := _glued(word):
            rest = word[len(glued) :]
            return rest in _LEADING or at > 0 or not rest.isalpha()
        if word not in _LEADING and not word.isdigit() and len(word) > 1:
            return False
    return False


def _is_mixed(value: str) -> bool:
    return (
        len(value) >= _LONG
        and any(map(str.isupper, value))
        and any(map(str.islower, value))
        and not shapes.is_words(value)
    )


def _glued(word: str) -> str | None:
    for name in _GLUED.get(word[:_HEAD], ()):
        if word.startswith(name):
            return name
    return None
