"""Sorting of rows: by `keys` where the comparator orders numbers (`radix`), else by asking it (`merge`)."""
