"""Other spellings of the same names, for programs that were written against them."""

from xlalite.compat import v1 as v1
