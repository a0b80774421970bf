"""Keys and tokens that a vendor's own prefix gives away.

vendor_keys: after detector, before credentials. The lengths are those that vendors document or that
their consoles give out; where a vendor promises none, the shortest that is in use. The prefix alone
is not enough: `hvs.token` and `xai-org` are words.
"""

from __future__ import annotations

from holdfast.privacy.detector import Detector

_PATTERNS = {
    # Model providers and their tools.
    "openrouter_key": r"\bsk-or-v1-[0-9a-f]{64}\b",
    "groq_key": r"\bgsk_[A-Za-z0-9]{48,60}\b",
    "xai_key": r"\bxai-[A-Za-z0-9]{70,90}\b",
    "perplexity_key": r"\bpplx-[A-Za-z0-9]{40,60}\b",
    "replicate_token": r"\br8_[A-Za-z0-9]{37}\b",
    "nvidia_key": r"\bnvapi-[A-Za-z0-9_-]{60,70}",
    "cerebras_key": r"\bcsk-[a-z0-9]{48}\b",
    "deepseek_key": r"\bsk-[0-9a-f]{32}\b",
    "tavily_key": r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{32}\b",
    "langsmith_key": r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b",
    "pinecone_key": r"\bpcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}\b",
    # Clouds and their identities.
    "google_oauth_token": r"\bya29\.[A-Za-z0-9_-]{20,}|\b1//0[A-Za-z0-9_-]{40,}",
    "google_client_secret": r"\bGOCSPX-[A-Za-z0-9_-]{28}",
    "azure_client_secret": r"\b[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    "azure_sas": r"\bsig=((?:[A-Za-z0-9+/]|%2[BbFf]){43}(?:=|%3[Dd]))",
    "digitalocean_token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "databricks_token": r"\bdapi[0-9a-f]{32}\b",
    "heroku_key": r"\bHRKU-AA[A-Za-z0-9_-]{58}",
    "fly_token": r"\bfm[12][ar]?_[A-Za-z0-9+/=]{60,}",
    "netlify_token": r"\bnf[bcoup]_[A-Za-z0-9]{36}\b",
    "supabase_key": r"\bsbp_[0-9a-f]{40}\b|\bsb_secret_[A-Za-z0-9_-]{30,}",
    "planetscale_token": r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}",
    # Secret stores and infrastructure.
    "vault_token": r"\bhv[brs]\.[A-Za-z0-9_-]{24,}",
    "doppler_token": r"\bdp\.(?:[a-z]{2}|scim|audit)\.(?:[a-z0-9_-]{1,60}\.)?[A-Za-z0-9]{40,44}\b",
    "terraform_token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
    "pulumi_token": r"\bpul-[0-9a-f]{40}\b",
    "age_key": r"\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b",
    "grafana_token": r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b|\bglc_[A-Za-z0-9+/]{32,}",
    "newrelic_key": r"\bNRAK-[A-Z0-9]{27}\b",
    "sentry_token": r"\bsntry[su]_[A-Za-z0-9+/=_]{40,}",
    "dockerhub_token": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{27,32}",
    "rubygems_key": r"\brubygems_[0-9a-f]{48}\b",
    # Services.
    "stripe_webhook_secret": r"\bwhsec_[A-Za-z0-9+/]{24,64}={0,2}",
    "shopify_token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    "linear_key": r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,64}\b",
    "notion_token": r"\bntn_[0-9]{11}[A-Za-z0-9]{32,40}\b|\bsecret_[A-Za-z0-9]{43}\b",
    "figma_token": r"\bfig[dru]_[A-Za-z0-9_-]{40,}",
    "postman_key": r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b",
    "airtable_token": r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b",
    "atlassian_token": r"\bATATT3[A-Za-z0-9_=-]{150,}",
    "brevo_key": r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b",
    "mailgun_key": r"\bkey-[0-9a-f]{32}\b",
}
VENDOR_KEYS = tuple(Detector(kind, pattern) for kind, pattern in _PATTERNS.items())
"""A detector for each vendor."""
