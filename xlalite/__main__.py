"""`python -m xlalite`: the command line program."""

import sys

from xlalite.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
