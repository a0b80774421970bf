"""Rules for tests that are about citations: every long result is cited, as in the seed."""

from __future__ import annotations

from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions

ALWAYS = CitingRules(policy="always")
CITES = FitOptions(cites=True, opens=True, rules=ALWAYS)
