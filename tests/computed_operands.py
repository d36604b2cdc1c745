"""Programs in which the kernel of a product computes an operand: fusions as `dot-operand-fusion` makes them."""

from __future__ import annotations

from collections.abc import Sequence

OPERANDS = ("scaled", "scaled by rows", "scaled in blocks", "gathered", "sliced", "moving", "padded", "masked", "added")
"""What an operand may be made by."""


def product_of_computed(
    kind: str,
    t: str,
    sizes: tuple[int, int, int],
    *,
    stored: str = "s8",
    result: str = "",
    side: int = 1,
    contracted: tuple[int, int] = (1, 0),
    batch: int = 0,
    after: bool = False,
) -> str:
    """A product of sizes m, n, k one operand of which is computed.

    Args:
        kind: One of `OPERANDS`.
        t: Element type of the operands.
        sizes: m, n and k.
        stored: Element type of what is scaled.
        result: Element type of the result, if it is another.
        side: Which operand is computed.
        contracted: The contracted dimension of each operand, 0 or 1, not counting that of the batch.
        batch: Size of the dimension in front of both operands; 0 for none.
        after: Whether the result's negation is what the kernel gives.
    """
    m, n, k = sizes
    free = (m, n)
    lead = (batch,) if batch else ()
    dims = [(*lead, free[i], k) if contracted[i] else (*lead, k, free[i]) for i in (0, 1)]
    parameters, lines, value = _computed(kind, t, stored, dims[side])
    other = len(parameters)
    parameters.append(_shape(t, dims[1 - side]))
    operands = (value, f"p{other}") if side == 0 else (f"p{other}", value)
    shift = len(lead)
    attributes = "".join(
        f", {name}_contracting_dims={{{contracted[i] + shift}}}" for i, name in enumerate(("lhs", "rhs"))
    )
    if batch:
        attributes += ", lhs_batch_dims={0}, rhs_batch_dims={0}"
    shape = _shape(result or t, (*lead, m, n))
    root = f"{shape} dot({operands[0]}, {operands[1]}){attributes}"
    tail = [f"d = {root}", f"ROOT r = {shape} negate(d)"] if after else [f"ROOT r = {root}"]
    given = [f"p{i} = {each} parameter({i})" for i, each in enumerate(parameters)]
    body = "\n".join(f"  {line}" for line in (*given, *lines, *tail))
    inputs = "\n".join(f"  {line}" for line in given)
    arguments = ", ".join(f"p{i}" for i in range(len(parameters)))
    call = f"  ROOT r = {shape} fusion({arguments}), kind=kOutput, calls=fused"
    return f"HloModule m\nfused {{\n{body}\n}}\nENTRY e {{\n{inputs}\n{call}\n}}\n"


def _shape(t: str, dims: Sequence[int]) -> str:
    return f"{t}[{','.join(map(str, dims))}]"


def _computed(kind: str, t: str, stored: str, dims: tuple[int, ...]) -> tuple[list[str], list[str], str]:
    """Parameters, lines of the kernel's body, and the name of the operand."""
    whole, rank = _shape(t, dims), len(dims)
    if kind.startswith("scaled"):
        if kind == "scaled in blocks" and dims[-2] % 2 == 0:
            scale = _shape(t, (*dims[:-2], 2, dims[-1]))
            blocks = _shape(t, (*dims[:-2], 2, dims[-2] // 2, dims[-1]))
            kept = ",".join(str(d) for d in range(rank + 1) if d != rank - 1)
            spread = [f"c = {blocks} broadcast(p1), dimensions={{{kept}}}", f"b = {whole} reshape(c)"]
        else:
            dimension = rank - 2 if kind == "scaled by rows" else rank - 1
            scale = _shape(t, (dims[dimension],))
            spread = [f"b = {whole} broadcast(p1), dimensions={{{dimension}}}"]
        lines = [f"a = {whole} convert(p0)", *spread, f"v = {whole} multiply(a, b)"]
        return [_shape(stored, dims), scale], lines, "v"
    if kind == "gathered" and rank == 2:
        rows = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
        line = f"v = {whole} gather(p0, p1), {rows}, slice_sizes={{1,{dims[1]}}}"
        return [_shape(t, (dims[0] + 3, dims[1])), _shape("s32", (dims[0],))], [line], "v"
    if kind == "moving":
        starts = [f"p{i + 1}" for i in range(rank)]
        sizes = ",".join(map(str, dims))
        line = f"v = {whole} dynamic-slice(p0, {', '.join(starts)}), dynamic_slice_sizes={{{sizes}}}"
        return [_shape(t, [d + 2 for d in dims]), *["s32[]"] * rank], [line], "v"
    if kind == "padded":
        inner = [max(0, d - 3) for d in dims]
        amounts = "x".join(f"{d - i - 1}_1" if d > i else "0_0" for d, i in zip(dims, inner, strict=True))
        return [_shape(t, inner), f"{t}[]"], [f"v = {whole} pad(p0, p1), padding={amounts}"], "v"
    if kind == "masked":
        lines = [
            f"i = {_shape('s32', dims)} iota(), iota_dimension={rank - 2}",
            f"j = {_shape('s32', dims)} iota(), iota_dimension={rank - 1}",
            f"g = {_shape('pred', dims)} compare(i, j), direction=GE",
            f"z = {t}[] constant(0)",
            f"b = {whole} broadcast(z), dimensions={{}}",
            f"v = {whole} select(g, p0, b)",
        ]
        return [whole], lines, "v"
    if kind == "added":
        return [whole, whole], [f"v = {whole} add(p0, p1)"], "v"
    wide = (*dims[:-1], 2 * dims[-1] + 1)
    ranges = ",".join([*(f"[0:{d}]" for d in dims[:-1]), f"[1:{2 * dims[-1] + 1}:2]"])
    return [_shape(t, wide)], [f"v = {whole} slice(p0), slice={{{ranges}}}"], "v"
