"""The rules of detect-secrets are the reference: we find the same, or give the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.privacy import find, flags

SAME = {
    "AWS Access Key": "aws_access_key",
    "Azure Storage Account access key": "azure_storage_key",
    "GitHub Token": "github_token",
    "GitLab Token": "gitlab_token",
    "OpenAI Token": "openai_key",
    "PyPI Token": "pypi_token",
    "SendGrid API Key": "sendgrid_key",
    "Slack Token": "slack_token",
    "Stripe Access Key": "stripe_key",
}
NARROWER = {
    "Artifactory Credentials": "AKC and ten letters are a word; real tokens are longer",
    "Basic Auth Credentials": "placeholders and quotes are left out",
    "Discord Bot Token": "its first part must be a number in base64",
    "JSON Web Token": "its first part must be a JSON object",
    "Mailchimp Access Key": "keys are hexadecimal",
    "NPM tokens": "only the token, not the rest of the line",
    "Private Key": "the header with its dashes, and the key below it",
    "Secret Keyword": "a name that ends with the keyword, a value that is no word or placeholder",
    "Square OAuth Secret": "no backslash inside",
    "Telegram Bot Token": "tokens begin with AA",
    "Twilio API Key": "keys are hexadecimal",
}
LEFT_OUT = {
    "Base64 High Entropy String": "as random as any image or digest",
    "Hex High Entropy String": "as random as a git hash",
    "Public IP (ipv4)": "names a machine; every log is full of them",
    "Cloudant Credentials": "a vendor's own assignment; the general rule covers most",
    "IBM COS HMAC Credentials": "likewise",
    "IBM Cloud IAM Key": "likewise",
    "SoftLayer Credentials": "likewise",
}
PLUGINS: dict[str, Any] = get_mapping_from_secret_type_to_class()


def test_every_plugin_is_covered_or_left_out_for_a_reason() -> None:
    assert set(PLUGINS) == {*SAME, *NARROWER, *LEFT_OUT}


def rules() -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, kind in SAME.items():
        plugin = PLUGINS[name]
        assert issubclass(plugin, RegexBasedDetector)
        for pattern in plugin.denylist:
            yield kind, pattern


@pytest.mark.parametrize(("kind", "pattern"), [*rules()])
def test_what_a_rule_of_detect_secrets_matches_is_found(
    kind: str, pattern: re.Pattern[str]
) -> None:
    ascii_only = st.characters(codec="ascii")
    matching = st.from_regex(pattern, fullmatch=True, alphabet=ascii_only)

    @settings(max_examples=20)
    @given(matching)
    def check(text: str) -> None:
        known = {kind, "aws_secret_key"} if kind == "aws_access_key" else {kind}
        assert known & set(flags(find(f"\n{text}\n")))

    check()
