"""settings: the only room that reads the environment and the settings file.

keys → sources → definitions → content → background → upstreams → table; each uses only those before
it.
"""

from holdfast.settings.background import WebSearch
from holdfast.settings.content import ModelLimits
from holdfast.settings.definitions import Definitions
from holdfast.settings.keys import PREFIX, Key, Secret, Traced
from holdfast.settings.sources import (
    FILE_NAME,
    MAX_FILE_BYTES,
    environment_for_programs,
    user_data_folder,
)
from holdfast.settings.table import Settings
from holdfast.settings.upstreams import DailyLimit, UpstreamEntry

__all__ = [
    "FILE_NAME",
    "MAX_FILE_BYTES",
    "PREFIX",
    "DailyLimit",
    "Definitions",
    "Key",
    "ModelLimits",
    "Secret",
    "Settings",
    "Traced",
    "UpstreamEntry",
    "WebSearch",
    "environment_for_programs",
    "user_data_folder",
]
