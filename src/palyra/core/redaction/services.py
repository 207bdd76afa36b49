"""Values that look drawn and stand right behind the name of a service: `shodan init k3J…`,
`algoliasearch('APP', '9f1c…')`.

A digest or a UUID says nothing by itself. Behind a service's name, with nothing between but words
that lead to a credential, it is one.
"""

import re
from collections.abc import Iterator, Sequence

from palyra.core.redaction import shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.shapes import Work

# Names that mean nothing else. A service whose name is an ordinary word, or near which digests
# stand (git hosts), is not here.
_NAMES = """
abbysale ably abstractapi abuseipdb abyssale accuweather activecampaign adafruit adafruitio adobe adyen adzuna aeroworkflow
aftership agentops agilecrm agora ahasaas ahrefs aichat aimtell airbrake airbrakeproject airbrakeuser airnow airtable
airvisual aiven akamai alation alchemy alconost aletheia aletheiaapi algolia algorithmia alibaba alienvault allsports alpaca
alphavantage amadeus amazonmws ambee amplitude amplitudeapi anthropic anypoint anyscale apacta api2cart apideck apiflash
apifonica apify apigee apilayer apimatic apimetrics apitemplate apollo appcenter appcues appdynamics appfollow appointedd
appoptics appsflyer appsynergy apptivo appveyor arize artifactory artsy asana assemblyai atera atlassian auth0 authorizenet
authress authy autodesk autoklose avalara avaza avazapersonal aviationstack aweber awsmws axiom axonaut aylien ayrshare
azuredevops azurefunction azuresearch azurestorage backblaze backblazeb2 baidu bamboohr bannerbear baremetrics baseapiio
baseten beamer beebole besnappy besttime betterstack billomat binance bingmaps bintray bitbar bitbucket bitcoinaverage
bitfinex bitly bitlyaccesstoken bitmex bitrise bittrex bitwarden blablabus blablacar blackduck blazemeter blitapp blizzard
blockchair blocknative bloomreach bluecatapi bluejeans bluesky bluesnap bombbomb bombora bonfida boostnote borgbase boxoauth
braintree branchio brandfetch brevo brex brightcove browserbase browserling browserstack bscscan btcmarkets buddyns budibase
bugherd bugsnag buildkite bulksms bunnynet buttercms caflou calcom calendarific calendly callrail calorieninja campaignmonitor
campayn cannyio capsulecrm captaindata carboninterface caspio cdnify censys cerebras cexio chainlink chargebee chargify
chartmogul chatfuel chatwork checio checklyhq checkmarx checkr checkvist cicero circleci ciscomeraki civo clarifai clearbit
cleverbridge clickdesk clickhelp clickhouse clickmeter clicksend clickup clicky cliengo clientary clinchpad clockify clockwork
clockworksms clojars closecrm cloudability cloudamqp cloudant cloudbees cloudcannon cloudconvert cloudelements cloudera
cloudflare cloudfront cloudimage cloudinary cloudmersive cloudplan cloudrail cloudsmith cloudway cloudways cloverly cloze
clustdoc cockroachdb codacy codeclimate codecov codefresh codemagic codequiry coderpad codeship cohere coinapi coinbase
coinlayer coinlib coinmarketcap coinstats collect2 cometml commercejs companieshouse companyhub confluent contentful
contentfulpersonal contentstack conversiontools convertapi convertkit convier coralogix couchbase couchdb countrylayer courier
coveo coveralls craftmypdf crisp cronitor crowdin crowdstrike cryptocom cryptocompare currencycloud currencyfreaks
currencylayer currencyscoop currentsapi customerguru customerio customerly d7network dailyco dandelion dareboost databento
databox databricks datacamp datadog datadoghq datadome datafire dataforseo datagov datahub datarobot datocms dbtcloud
deadmanssnitch debounce deepai deepgram deepinfra deepl deepnote deepseek deezer delighted delphix deputy descope desktime
detectify detectlanguage dfuse diffbot diggernaut digicert digistore24 digitalocean digitalriver directus discord disqus
disqusapi ditto dnscheck dnsimple docebo dockerhub docparser docraptor documenso documo docusign docuware donorbox doordash
doppler dotdigital dotmailer doubleclick dovico drata dribbble driftbot dronahq droneci dropbox duffel duply dwolla dynadot
dynalist dynatrace dynu dyspatch eagleeyenetworks easyinsight easypost ebay ecostruxure ecwid edamam edenai eightxeight
elasticcloud elasticemail elevenlabs eloqua emailable emailjs emailoctopus enablex engagespot enphase envato esputnik
etherscan ethplorer etoro etsy eventbrite eventim everhour evernote eversign exabeam exchangerate exchangeratesapi exoscale
expensify exportsdk extractorapi facebook faceplusplus factset falai fastforex fastly fastmail fastspring fauna faunadb
feedier feedly fetchrss fibery fidel figma fileio filestack finage financialmodelingprep finbox findl finicity finnhub
firebase firecrawl firehydrant fireworksai fitbit fivetran fixerio flagsmith flatfile flatio fleetbase fleetio flexmail
flexport flickr flickrapi flightapi flightlabs flightradar24 flightstats flodesk flowdash flowflu flutterwave fluxcd flyio
fmfw forestadmin forgerock formbucket formcraft formio formsite formspree formstack fossa foursquare frameio freemius
freshbooks freshdesk freshsales freshservice frontapp frontegg fulcrum fulfil fullcontact fullstory funnelbeam fusebill
fusionauth fxmarket gandi geckoboard gemini gengo geoapify geocodify geocodio geoipify geonames getaccept getemail getgeoapi
getgist getresponse getsandbox getsitecontrol getstream giphy gitguardian gitkraken gitter gladly glassnode glip gnews
gocanvas gocardless gocd godaddy goodday goodreads googlemaps googleoauth gorest gorgias gotowebinar grafana graphcms
graphhopper greenhouse groovehq groq growingio growthbook gtmetrix guardianapi gumroad gusto gyazo hackerone happyscribe
harvestapp hashicorp hashnode hasura hcaptcha heap helius hellobar hellosign helpcrunch helpjuice helpscout helpshift hereapi
heroku hetzner hexomatic highrise hightouch hivage hiveage holidayapi honeybadger honeycomb hootsuite host_io hostaway
hostinger hotjar html2pdf hubspot hubstaff huggingface huggingfacehub humio hunter hunterio hybiscus hygraph hypertrack
ibmcloud iconfinder iconik iexapis iexcloud ifttt ilovepdf imagekit imagga imgbb imgix imgur incidentio infinario infisical
influxdb infracost infura infusionsoft inngest insightly insomnia instabot instagram instamojo instana instapaper instatus
integromat intellihr intercom interseller intra42 intrinio invoiceocean ionos ip2location ipapi ipdata ipgeolocation ipify
ipinfo ipinfodb ipquality ipstack ironmq iterable iubenda jambonz jfrog jiratoken jotform jumpcloud jumpseller juro jwplayer
kaggle kagi kairnial kaleyra kameleoon kanbantool kapiche karmacrm keap keenio kenect keycdn keycloak keygen keygenapi kickbox
kinde kinsta kintone kite_connect klarna klaviyo klaviyoapi klipfolio knapsackpro knowbe4 kobotoolbox kontent kontentai koyeb
kraken ksoc kubecost kucoin kustomer kylas lacework lambdatest langchain langfuse langsmith languagelayer laravelforge
larksuite lastfm launchdarkly layerstack leadfeeder leanix leaseweb legiscan lemlist lemonsqueezy lendflow lessannoyingcrm
letterxpress lexigram lineapp linearapi linemessaging linkedin linode liquidplanner listrak litellm liveagent livechat livekit
liveperson livestorm loadimpact loadmill lob locationiq logdna logflare loggly loginradius logrocket logzio lokalise looker
loyverse lucidchart luigisbox lumigo lunchmoney luno m3o madkudu magicbell magnetic mailboxlayer mailchimp mailclark
mailerlite mailersend mailgun mailjet mailmodo mailsac mailslurp mailtrap mailup mandrill mapbox mapmyindia mapquest marketo
marketstack marvelapp matomo mattermost mattermostpersonaltoken mavenlink maxmind meaningcloud mediastack meilisearch
meistertask mem0 meraki mercadopago mesibo messagebird messente metaapi metabase metatrader metrilo mezmo microcms
microsoftteams mimecast mindmeister mistral mixcloud mixedbread mixmax mixpanel mocaverse mockaroo mojohelpdesk mollie
mondaycom moneybird mongodb mongolab monkeylearn moonclerk moosend moosendapi moov moralis mparticle mrticktock mulesoft mux
muxcom myexperiment myfreshworks myintervals myob n8n namecheap nanoleaf nasdaq netatmo netcore netdata nethunt netlify
netsuite neutrinoapi neverbounce newrelic newsapi newscatcher newsdata nexmo nexmoapi nftport ngrok nicereply nightfall
nightwatch ninjaone nordigen northflank noticeable notion nozbeteams nugetapikey numverify nutritionix nvapi nvidia nvidianim
nylas nytimes oanda ocelot octopus okta omnisend onedesk onelogin onepage onepagecrm onesignal onesky onfido onfleet ontraport
onwater oopspam openai opencage opencagedata openexchangerates opengraphr openlayer openmeter openphone openrouter opensea
openuv openvpn openweather openweatherapi openweathermap opsgenie opsramp optimizely optimove orbit_love orcid osano otoroshi
outreach overloop owlbot oxylabs packagecloud packagist paddle pagekite pagerduty pagertree paloalto pandadoc pandascore
paperform papertrail papyrs paralleldots parsehub parseur parsio partnerstack passbase passbolt pastebin patreon paychex
paydirt paylocity paymentsense paymo paymoapp paymongo payoneer paypal paystack paytm pcloud pdfco pdflayer pdfshift pendo
penpot peopledatalabs peopleforce pepipost percona percy perplexity phabricator phonebase photoroom phyllo pinata pinboard
pinecone pingdom pinterest pipedream pipedrive pipefy pivotaltracker pixabay pixela plaid planetscale planhat planly
planningcenter planviewleankit planyo platformsh plausible plivo podchaser podio pollsapi poloniex polygon polygonio
polygonscan porkbun portainer portkey positionstack postageapi postalytics postbacks posthog postman postmark powrbot prefect
prestashop printful prismic pritunl privacycom privateai prodpad productboard profitwell prospectcrm protocolsio proxycrawl
pubg publer pubnub pulsedive pulseway pulumi purestake pushbullet pusher pusherbeams pushover qase qdrant qonto qualaroo
qualys quandl quay qubole quickbase quickbooks quickmetrics quicknode quizlet quotaguard rabbitmq ragic railz ramcloud rapid7
rapidapi rapyd rawg raygun razorpay rbcommons reachmail reactapp readme readthedocs readycloud reallysimplesystems reamaze
rebrandly recaptcha rechargepayments recurly recurlyapi redislabs refiner remotebg rentcast rentman repairshopr rephrase
replicate replicated replit replyio requestfinance resend respondio restpack restpackhtml retool revai revamp revampcrm revio
revolut rightscale ringcentral ringover riotgames rippling riskified ritekit roblox rocketchat rocketreach rollbar route4me
rownd rubygems rudder rundeck runpod runrunit runscope saasler sailpoint saladcloud saleor salesblink salescookie salesflare
salesforce salesloft salesmate samsara satismeter satuit saucelabs scalegrid scaleway scalingo scalr scanii schoology
scormcloud scrapeowl scraperapi scraperbox scraperstack scrapestack scrapfly scrapingant scrapingbee scrapingdog screenly
screenshotapi screenshotlayer scrutinizerci seatable seatgeek securitytrails segment segmentio selectel selectpdf sellfy
semaphore semgrep sendbird sendcloud sendgrid sendinblue sendlane sendpulse sendy sensedia sentry serpapi serphouse serpstack
serpwow serverdensity servicenow servicetitan settlemint seventimer sharefile sheety sherpadesk shipday shippingeasy shippo
shipstation shodan shopee shopify shotstack shutterstock sidekiq signable signalfx signalwire signaturit signnow signupgenius
signwell sigopt sigparser simfin simplecast simplehash simplelogin simplesat simplynoted simvoly sinch sirv siteground
siteleaf siterelic skrapp skybiometry skyflow skyscanner skytap slack slackapi slackbot slite smartcar smartling
smartrecruiters smartsheet smartystreets smooch smsglobal snapchat snipcart snov snovio snowflake snyk snykkey socrata
solarwinds sonarcloud sonarqube sophos soundcloud sourcegraph spacelift sparkcentral sparkpost speakeasy speechify
speechmatics speechtextai splitio splunk spoonacular sportradar sportsmonk spotify spotipy spreedly spryng squadcast squareapp
squarespace squareup sslcom sslmate stackblitz stackhawk stackpath statically statsig statuscake statuscakeapi statuspage
statuspal stigg stitchdata stockdata stockx stoplight storecove stormboard stormglass stormpath storyblok storyblokapi
storychief strava streamlabs stripe stripeconnect stripo stytch stytchapi sugarcrm sugester sumologic sumsub supabase
superhuman supernotes surveyanyplace surveybot surveycto surveymonkey surveysparrow survicate swagbucks swaggerhub swiftype
symbl sysdig taggun tailscale talkdesk tallyfy tatum tatumio tavily taxjar teachable teamcity teamgate teamwork tefter
telegram telesign teletype telnyx tenable tencent testingbot testrail text2data textlocal textmagic thales theoddsapi thetvdb
thingsboard thingspeak thinkific thinkst thousandeyes threatconnect threatstack ticketmaster tickettailor ticktick tiingo
tiktok timecamp timely timezoneapi tineswebhook tmdb tmetric todoist togetherai toggl tokeet tomorrowio tomtom trackjs tradier
trafft transferwise translink travelpayouts travelport travisci treasuredata trello trelloapikey trendmicro triggerdev
tripadvisor tru_account truenas trustpilot turbovote turnitin turso tuya tvmaze twelvedata twentythree twilio twilioapi
twingate twitch twitter tyntec typeform typefully typesense typetalk ubidots uclassify udemy ultradns unbounce unifi unifyid
unkey unplugg unsplash upcdatabase upcloud uplead uploadcare uploadio uploadthing uproc upstash uptimerobot uptrends upwave
urlscan userflow userlane usermaven userpilot userstack vagrantcloud vantage vapi vatlayer vbout vendasta veracode vercel
verifalia verimail veriphone veriphoneapi versioneye viacep viber victorops viewneo vimeo virustotal virustotalapi
visualcrossing vitess voiceflow voicegain voiceit volcengine vonage voodoosms vouchery vpnapi vultr vyte wakatime walkscore
wandb watsonx waveapps weatherapi weatherbit weatherstack weaviate web3storage webex webflow webhookrelay webscraper
webscraping websitepulse weightsandbiases wepay whatsapp whoisxml whoxy wistia wizapi wolfram wolframalpha woocommerce
workable workato workos worksnaps workspaceone workstack worldcoinindex worldweather worldweatheronline wpengine wrappixel
wrike writesonic wufoo xai xata xendit xero xmatters yandex yeastar yelp yelpapi yodlee youcanbookme youneedabudget yousign
youtrack youtube zapier zencoder zendesk zendeskapi zenkit zenrows zenscrape zenserp zeplin zerobounce zeroheight zerosheets
zerossl zerotier ziflow zigbee zilliz zipapi zipbooks zipcodeapi zipcodebase zoho zonka zonkafeedback zoom zoominfo
zoominfoapi zscaler zulip zulipchat zuora zuplo
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
_LEADING = frozenset((*_LEADING_WORDS.split(), "id"))
_SHORT_NAMES = (3, 4, 5)
_TAIL_WORDS = """
api apikey key token secret clientid clientsecret accesstoken authtoken oauth accesskey secretkey appid appkey appsecret
apitoken apisecret password private access
"""  # noqa: E501
_TAILS = frozenset(_TAIL_WORDS.split())
# x_api = "…", x.sk: a name that says the same without the word for it.
_TELLING = re.compile(
    r"(?<![a-z0-9])(?:api|app_?code|reporter_?id|sk|ak)[\"'\]]{0,2}[ \t]{0,4}[:=][ \t]{0,4}[\"'`]?$"
)
# Client("…"), set_access_token("…", "…"): what is called takes a credential.
_TAKING = re.compile(
    r"(?:client|login|connect|credentials?|authenticate|auth|oauth|token|api_?key|secret|sdk|signin|basicauth)\(\s{0,8}[bu]?[\"'`]$"
)
_LOADING = re.compile(
    r"(?:\.load|\.init|initialize|configure|\.start|\.setup|\.api)\(\s{0,8}[\"'`]$"
)
_WORD = re.compile(r"[a-z0-9]+")
_VALUE = re.compile(r"[A-Za-z0-9_\-.]{16,160}={0,2}")
_PUBLIC = re.compile(
    r"(?:^|[_\-."
    r" ])(?:ids?|public|publishable|pub|ur[il]|host|name|email|user(?:name)?|version|region|sid)"
    r"[\"']?[\])]?\s*[:=,(]*\s*[\"'`]?$"
)
# What a service calls a program by; some draw it as they draw secrets.
_CLIENT_ID = re.compile(
    r"(?:client|app|application|consumer|access)[_\-. ]?id[\"']?[\])]?\s*[:=,(]*\s*[\"'`]?$"
)
# What stands before the second of two arguments.
_ARGUMENT = re.compile(r"[bu]?[\"'`][^\"'`\s]{1,80}[\"'`]\s{0,4},\s{0,4}([\"'`]?)$")
_COMMANDS = frozenset(("login", "auth", "authtoken", "authenticate"))  # tool login 8ec8d7…
_QUOTES = ("'", '"', "`")
_REACH = 96
_OPENERS = frozenset("\"'`=:( \t,")
_MOST_BETWEEN = 5
_LONG = 24
_LONG_LETTERS = 20
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
    if shapes.is_typed(value):
        return not shapes.is_filler(value)
    return (
        shapes.is_random(value, 16)
        and (
            shapes.has_digit_and_letter(value)
            or (
                len(value) >= _LONG_LETTERS
                and shapes.is_jumble(value)
                and not shapes.is_words(value)
            )
        )
        and not shapes.is_hashed(value)
        and not shapes.is_fluent(value)
        and (not shapes.is_masked(value) or shapes.is_sequence(value))
    )


def _is_led_to(before: str, value: str) -> bool:
    """Return whether a service's name stands in `before`, and only words that lead to a credential
    behind it, or a call that takes one.
    """
    if "::" in before or (
        _PUBLIC.search(before)
        and not (_CLIENT_ID.search(before) and not shapes.UUID.fullmatch(value))
    ):
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
        if _is_short_glued(word):
            return True
        if glued := _glued(word):
            rest = word[len(glued) :]
            return (
                (rest in _LEADING and rest != "id")
                or rest in _TAILS
                or at > 0
                or not rest.isalpha()
            )
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


def _is_short_glued(word: str) -> bool:
    """Return whether this is a short name with what is its credential glued to it: oktatoken."""
    return any(word[size:] in _TAILS and word[:size] in _SERVICES for size in _SHORT_NAMES)


def _glued(word: str) -> str | None:
    for name in _GLUED.get(word[:_HEAD], ()):
        if word.startswith(name):
            return name
    return None
