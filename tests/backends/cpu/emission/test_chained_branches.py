"""Branches whose operand is another branch's result, which must outlive what the other side is given."""

CHAIN = """
HloModule chain

first { p = (s64[]) parameter(0)
  g = s64[] get-tuple-element(p), index=0
  ROOT t = (s64[]) tuple(g) }
second { p = (s64[]) parameter(0)
  g = s64[] get-tuple-element(p), index=0
  ROOT t = (s64[]) tuple(g) }
third { p = (s64[]) parameter(0)
  g = s64[] get-tuple-element(p), index=0
  ROOT t = (s64[]) tuple(g) }
fourth { p = (s64[]) parameter(0)
  g = s64[] get-tuple-element(p), index=0
  ROOT t = (s64[]) tuple(g) }

ENTRY main {
  x = s64[] parameter(0)
  y = s64[] parameter(1)
  sum = s64[] add(x, y)
  is_more = pred[] compare(sum, x), direction=GT
  sums = (s64[]) tuple(sum)
  xs = (s64[]) tuple(x)
  best = (s64[]) conditional(is_more, sums, xs), true_computation=first, false_computation=second
  least = s64[] get-tuple-element(best), index=0
  product = s64[] multiply(sum, y)
  is_better = pred[] compare(product, least), direction=GT
  products = (s64[]) tuple(product)
  result = (s64[]) conditional(is_better, products, best), true_computation=third, false_computation=fourth
  ROOT found = s64[] get-tuple-element(result), index=0
}
"""


def test_a_value_that_one_branch_hands_on_is_kept_until_that_branch_runs(check):
    for y in (-5, -1, 0, 1, 7):
        check(CHAIN, 3, y)
