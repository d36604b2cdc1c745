"""The words that decision records of clustering use as verdicts, and the stage that they name."""

from typing import Final

STAGE: Final = "clustering"
LEFT_OUT: Final = "left out"
NOT_JOINED: Final = "not joined"
KEPT: Final = "kept"
DISSOLVED: Final = "dissolved"
