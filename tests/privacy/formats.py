"""Key formats of many vendors, with invented values: the sample for measuring detectors.

A format is a template in which `{x40}` represents 40 characters of an alphabet. The values are
assembled when they are needed, so that no scanner of repositories takes this file for a leak.
Names like `API_KEY=` around a value would reveal it, so most templates have none.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "h": string.digits + "abcdef",
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "w": string.ascii_lowercase,
    "t": string.ascii_letters,
    "d": string.digits,
    "s": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
    "e": "qpzry9x8gf2tvdw0s3jn54khce6mua7l".upper(),
}
_HOLE = re.compile(r"\{([a-z])(\d+)\}")

FORMATS = {
    # Formats found before 2026-11-18.
    "AWS access key": "AKIA{u16}",
    "AWS secret key": 'aws_secret_access_key = "{a40}"',
    "GitHub classic": "ghp_{a36}",
    "GitHub fine-grained": "github_pat_{a22}_{a59}",
    "GitHub app": "ghs_{a36}",
    "GitLab": "glpat-{s20}",
    "Slack bot": "xoxb-{d12}-{d13}-{a24}",
    "Slack app": "xapp-1-A{u10}-{d13}-{h64}",
    "Slack webhook": "https://hooks.slack.com/services/T{u8}/B{u8}/{a24}",
    "Stripe live": "sk_live_{a24}",
    "OpenAI": "sk-{a20}T3BlbkFJ{a20}",
    "OpenAI project": "sk-proj-{s74}T3BlbkFJ{s74}",
    "Anthropic": "sk-ant-api03-{s93}AA",
    "Google API": "AIza{s35}",
    "Hugging Face": "hf_{t34}",
    "npm": "npm_{a36}",
    "PyPI": "pypi-AgEIcHlwaS5vcmc{s80}",
    "SendGrid": "SG.{s22}.{s43}",
    "Twilio": "SK{h32}",
    "Mailchimp": "{h32}-us12",
    "Square": "sq0csp-{s43}",
    "Telegram": "{d10}:AA{s33}",
    "Azure storage": "AccountName=a;AccountKey={b86}==;EndpointSuffix=b",
    "Password in URL": "postgresql://app:{a12}7@db.internal/app",
    "Bearer header": "Authorization: Bearer {a39}7",
    "Password with digits": 'password = "{w8}42"',
    # What issue 27 lists.
    "OpenRouter": "sk-or-v1-{h64}",
    "Groq": "gsk_{a52}",
    "xAI": "xai-{a80}",
    "Perplexity": "pplx-{a48}",
    "Replicate": "r8_{a37}",
    "Vault": "hvs.{s95}",
    "Google OAuth": "ya29.{s120}",
    "DigitalOcean": "dop_v1_{h64}",
    "Databricks": "dapi{h32}",
    "Doppler": "dp.pt.{a43}",
    "Azure SAS": "https://a.blob.core.windows.net/c?sv=2022-11-02&sr=c&sp=r&sig={a43}%3D",
    "curl -u": "curl -u admin:{a9}7 https://ci.internal/",
    "JWK": '{{"kty": "EC", "crv": "P-256", "x": "{s43}", "d": "{s43}"}}',
    "Password of letters": 'password: "{w12}"',
    "Password of letters in a shell": "export DB_PASSWORD={w14}",
    "Password with example": 'password = "{w5}4example!{w3}"',
    # More of the same kind.
    "Vault batch": "hvb.{s140}",
    "Google client secret": "GOCSPX-{s28}",
    "Azure client secret": "{a3}8Q~{s34}",
    "Stripe webhook": "whsec_{a32}",
    "Shopify": "shpat_{h32}",
    "Linear": "lin_api_{a40}",
    "Notion": "ntn_{d11}{a35}",
    "Figma": "figd_{s40}",
    "Postman": "PMAK-{h24}-{h34}",
    "New Relic": "NRAK-{u27}",
    "Grafana": "glsa_{a32}_{h8}",
    "Terraform": "{a14}.atlasv1.{s67}",
    "Pulumi": "pul-{h40}",
    "Sentry": "sntryu_{h64}",
    "PlanetScale": "pscale_tkn_{s43}",
    "Supabase": "sbp_{h40}",
    "Fly.io": "fm2_{b120}",
    "Heroku": "HRKU-AA{s58}",
    "Airtable": "pat{a14}.{h64}",
    "Atlassian": "ATATT3xFfGF0{s180}",
    "Docker Hub": "dckr_pat_{s27}",
    "RubyGems": "rubygems_{h48}",
    "Netlify": "nfp_{a36}",
    "age": "AGE-SECRET-KEY-1{e58}",
    "NVIDIA": "nvapi-{s64}",
    "Cerebras": "csk-{l48}",
    "Tavily": "tvly-dev-{a32}",
    "LangSmith": "lsv2_pt_{h32}_{h10}",
    "Pinecone": "pcsk_{a6}_{a60}",
    "DeepSeek": "sk-{h32}",
    "Brevo": "xkeysib-{h64}-{a16}",
    "Mailgun": "key-{h32}",
    "WireGuard": "PrivateKey = {b43}=",
    "netrc": "machine api.internal login deploy password {a10}7",
    "sshpass": "sshpass -p {a9}7 ssh deploy@build.internal",
    "Basic header": "Authorization: Basic {a29}7==",
    "API key header": "X-Api-Key: {h32}",
}
"""A name, and a line that holds a secret of this format."""

UNKNOWN = {
    "Cloudflare": "v1.0-{h24}-{h146}", "Contentful": "CFPAT-{s43}", "Algolia": "{h32}",
    "Asana": "1/{d16}:{h32}", "CircleCI": "CCIPAT_{a22}_{h40}", "Buildkite": "bkua_{h40}",
    "Dynatrace": "dt0c01.{u24}.{u64}", "Duffel": "duffel_live_{s43}", "EasyPost": "EZAK{a54}",
    "Prefect": "pnu_{l36}", "ReadMe": "rdme_{l70}", "Typeform": "tfp_{s59}",
}  # fmt: skip
"""Formats that no detector was written for: found only where a name gives them away."""

HARMLESS = [
    'password: "required"', 'password = "password"', '"password": "string"', "password=password",
    'type="password" name="password"', '"secret": "optional"', "PASSWORD=changeme",
    'password: "forgotten"', "Password: incorrect", 'passwordLabel: "Password"',
    "password=example", "secret=example-token-123", 'password = "Example Password"',
    "apikey: your-api-key-here", "sk-or-v1-… (your key)", "gsk_your_key", "hvs.token",
    "dapi-endpoint", "xai-org/grok-1", "pplx-api documentation", "r8_video", "key-value",
    "curl -u user:password https://example.com", "curl -u $USER:$TOKEN https://example.com",
    "docker run -u 1000:1000 image", "chown -u root:wheel", "sort -u file:name",
    'sig=abc', '{"d": "2024-01-01", "x": 1}', "sk-learn-contrib-feature-selection-module",
    "csk-module-name-with-dashes", "pat.example.com", "login deploy password prompt",
    "the password argument is deprecated", 'PASSWORD_FIELD = "password_hash"',
    "password=hunter", "The secret: patience", 'ssh_key: "deploy"', "sshpass -p password ssh host",
    "passwordAuthentication: enabled", 'passphrase: "Enter passphrase"',
]  # fmt: skip
"""Lines that look like secrets and are none."""


def value_of(template: str, chance: random.Random) -> str:
    """The template with random characters in its holes."""
    filled = _HOLE.sub(
        lambda hole: "".join(chance.choices(_ALPHABETS[hole[1]], k=int(hole[2]))), template
    )
    return filled.replace("{{", "{").replace("}}", "}")


def sample(times: int, seed: int = 27) -> list[tuple[str, str]]:
    """Lines that hold a secret, with the name of its format."""
    chance = random.Random(seed)
    lines = [
        (name, value_of(template, chance))
        for name, template in FORMATS.items()
        for _ in range(times)
    ]
    for _ in range(times):
        header = _encoded(json.dumps({"alg": "HS256", "kid": value_of("{a8}", chance)}))
        claims = _encoded(json.dumps({"sub": value_of("{d8}", chance)}))
        lines.append(("JWT", f"{header}.{claims}.{value_of('{s43}', chance)}"))
        body = "\n".join(value_of("{b64}", chance) for _ in range(3))
        kind = "PRIVATE KEY"
        lines.append(("PEM", f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"))
        bot = _encoded(value_of("1{d17}", chance))
        lines.append(("Discord", f"{bot}.{value_of('{s6}', chance)}.{value_of('{s27}', chance)}"))
    return lines


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
