"""Made-up secrets and personal data. They are put together here, so that no scanner of
repositories takes this file for a leak."""

from __future__ import annotations

import base64
import string

ALNUM = string.ascii_letters + string.digits


def run(length: int, alphabet: str = ALNUM) -> str:
    """Characters that look random and are the same every time."""
    return "".join(alphabet[(7 * n * n + 13 * n + 5) % len(alphabet)] for n in range(length))


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
PEM = "\n".join(
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        run(64),
        run(64),
        run(10) + "==",
        "-----END RSA PRIVATE KEY-----",
    ]
)
SECRETS = [
    ("aws_access_key", "AKIA" + run(16, UPPER)),
    ("github_token", "ghp_" + run(36)),
    ("github_token", "github_pat_" + run(22) + "_" + run(59)),
    ("gitlab_token", "glpat-" + run(20)),
    ("slack_token", "xoxb-" + run(12, "123456789") + "-" + run(24)),
    ("slack_token", "https://hooks.slack.com/services/T" + run(8) + "/B" + run(8) + "/" + run(24)),
    ("stripe_key", "sk_live_" + run(24)),
    ("openai_key", "sk-proj-" + run(40) + "T3BlbkFJ" + run(40)),
    ("anthropic_key", "sk-ant-api03-" + run(93)),
    ("google_api_key", "AIza" + run(35)),
    ("huggingface_token", "hf_" + run(34, string.ascii_letters)),
    ("npm_token", "npm_" + run(36)),
    ("pypi_token", "pypi-AgEIcHlwaS5vcmc" + run(80)),
    ("sendgrid_key", "SG." + run(22) + "." + run(43)),
    ("twilio_key", "SK" + run(32, HEX)),
    ("mailchimp_key", run(32, HEX) + "-us12"),
    ("square_key", "sq0csp-" + run(43)),
    ("telegram_token", "1234567890:AA" + run(33)),
    ("discord_token", encoded("123456789012345678") + "." + run(6) + "." + run(27)),
    ("artifactory_token", "AKC" + run(70)),
    ("jwt", ".".join([encoded('{"alg":"HS256"}'), encoded('{"sub":"1234567890"}'), run(43)])),
    ("private_key", PEM),
]
PERSONAL = [
    ("email", "jane.doe+news@mail.example.co.uk"),
    ("credit_card", "4111 1111 1111 1111"),
    ("credit_card", "5555-5555-5555-4444"),
    ("credit_card", "378282246310005"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
    ("us_ssn", "219-09-9998"),
    ("phone", "+44 20 7946 0958"),
    ("phone", "+1 (555) 010-9999"),
    ("phone", "(555) 234-5678"),
    ("phone", "555-234-5678"),
]
IN_CONTEXT = [
    ("aws_secret_key", 'aws_secret_access_key = "{}"', run(40)),
    ("azure_storage_key", "AccountName=a;AccountKey={};Suffix=b", run(86) + "=="),
    ("npm_token", "//registry.npmjs.org/:_authToken={}", run(36, HEX)),
    ("basic_auth_url", "postgresql://{}@localhost:5432/app", "admin:s3cr3t-Pa55"),
    ("authorization_header", "Authorization: Bearer {}", run(40)),
    ("generic_secret_assignment", 'password = "{}"', "hunter2!"),
    ("generic_secret_assignment", '{{"db_password": "{}"}}', "c0rrect-horse"),
    ("generic_secret_assignment", '"{{\\"client_secret\\": \\"{}\\"}}"', run(20)),
    ("generic_secret_assignment", "export API_KEY={}\n", run(32, HEX)),
    ("generic_secret_assignment", "auth_token: {}", run(24)),
    ("generic_secret_assignment", "password => '{}'", "pä55wörter"),
    ("phone", '"contact_phone": "{}"', "5552345678"),
    ("phone", "tel:{}", "+15552345678"),
]
"""A kind, a text with a hole, and the exact value in the hole that must be found."""

HARMLESS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "123e4567-e89b-12d3-a456-426614174000",
    "ref:json_rows:0123456789abcdef",
    "[ref:log:4111111111111111] expand_ref",
    "2024-05-17T12:34:56.789012+02:00",
    "2024-05-17 12:34:56,789 INFO 1715949296789123",
    "$1,234,567.89 €4.111.111.111.111.111,00",
    "v1.2.3-rc.4+build.20240517 555.234.5678.9",
    "python-3.11.4-555-234-5678",
    "192.168.0.1 8.8.8.8 2001:db8::1",
    "git@github.com:owner/repository.git",
    "icon@2x.png getty@tty1.service @decorator pkg@1.2.3",
    "4111111111111112",  # one digit off: the check of cards fails
    '{"id": 4111111111111111}',
    "https://example.com/items/4111111111111111/",
    "0.4111111111111111",
    "DE89370400440532013001",  # its check fails
    "000-12-3456 666-12-3456 123-00-4567 900-12-3456",
    "SKU-123-45-67890",
    "+1715949296\n+4915949296",  # lines that a diff adds
    '{"next_page_token": "CAUQAA", "tokens": 1234, "token_type": "bearer"}',
    '{"password": null, "secret": true, "passwordPolicy": {"minimumLength": 12}}',
    "password: string\npassword: ${DB_PASSWORD1}\npassword: <your-password1>",
    'password = os.environ["DB_PASSWORD1"]; secret = get_secret("db1")',
    "The password must have 8 characters. secret=REDACTED_TOKEN1",
    'secretName: "db-credentials"\nprimary_key: user_id1\nsort_key="created_at2"',
    "https://user:${PASSWORD}@host/ https://host:8080/@scope",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgk\n-----END CERTIFICATE-----",
    "eyJub3QiOiJhIHRva2VuIn0",  # JSON in base64, but no token
    "sk-learn sk_test_4eC39HqLyjWDarjtT1zdp7dc ghp_short",
    "ORGANIZATION_NAME_OF_OWNER.CONFIG.ABCDEFGHIJKLMNOPQRSTUVWXYZABC",
]
