"""Random modules, random arguments, and what compares the results: shared by property tests of passes and backends.

`basic.py` makes modules of common operations. `growing.py` makes them of all: it says which operation comes next, a
file for each family how it is made. `differential.py` runs modules on two backends.
"""

from random_modules.basic import make_basic_module as make_basic_module
from random_modules.values import make_random_arguments as make_random_arguments, require_same_bits as require_same_bits
