"""Read settings from arguments, the environment and the settings file.

No other package reads the environment or the settings file.
"""

from holdfast.settings.background import WebSearch
from holdfast.settings.content import ModelLimits
from holdfast.settings.definitions import Definitions
from holdfast.settings.keys import PREFIX, Key, Secret, TracedValue
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
    "TracedValue",
    "UpstreamEntry",
    "WebSearch",
    "environment_for_programs",
    "user_data_folder",
]
