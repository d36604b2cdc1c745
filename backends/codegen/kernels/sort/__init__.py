"""Sorting of rows, and selection of their first elements.

`records` of a key and a position are made and written by `rows` and `columns`, and ordered by `quicksort`, `network`,
`radix` or, where only a comparator knows, `merge`.
"""
