# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.program_logging import (
    DEBUG as DEBUG, ERROR as ERROR, FATAL as FATAL, INFO as INFO, WARN as WARN, debug as debug, error as error,
    fatal as fatal, flush as flush, get_verbosity as get_verbosity, info as info, log as log,
    log_every_n as log_every_n, log_first_n as log_first_n, log_if as log_if, set_verbosity as set_verbosity,
    vlog as vlog, warn as warn, warning as warning
)

