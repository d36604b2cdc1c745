"""The shape of a kernel: of what kind it is, what it walks over, and where it reads each of its instructions.

Fusion asks which kernel an instruction starts, code generation which kernels could compute a fused computation; the
answer to both is here, and so is the order in which kinds are preferred.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.control_flow import FusionKind
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.analysis.matrix_products import is_grouped_convolution, is_in_phases, is_matrix_product
from xlalite.passes.fusion.domain import Domain, Place, find_places, place_of_result, reduced_domain
from xlalite.passes.fusion.fusible import is_turned_in_tiles


class KernelKind(enum.Enum):
    """What a kernel is made for; where several fit, `kernel_domains` says which is preferred."""

    UPDATE = "update in place"
    SCATTER = "scatter"
    SELECT_AND_SCATTER = "select and scatter"
    SORT = "sort"
    TOP = "top"
    FFT = "fft"
    CHOLESKY = "cholesky"
    TRIANGULAR_SOLVE = "triangular solve"
    LU = "lu"
    QR = "qr"
    REFLECTIONS = "reflections"
    EIGH = "eigh"
    SVD = "svd"
    HESSENBERG = "hessenberg"
    TRIDIAGONAL = "tridiagonal"
    PIVOTED_QR = "pivoted qr"
    SCHUR = "schur"
    EIG = "eig"
    TRIDIAGONAL_SOLVE = "tridiagonal solve"
    TRANSPOSE = "transpose"
    CONCATENATE = "concatenate"
    ZERO_PAD = "zero pad"
    CHAIN = "chain"
    DOT = "dot"
    PHASES = "phases"
    ROW = "row"
    COLUMN = "column"
    CUMULATIVE = "cumulative"
    CONVOLUTION = "convolution"
    LOOP = "loop"

    @property
    def fusion_kind(self) -> FusionKind:
        """What HLO text calls a fusion that becomes such a kernel."""
        return _FUSION_KIND.get(self, FusionKind.LOOP)


_FUSION_KIND = {
    KernelKind.CHAIN: FusionKind.OUTPUT,
    KernelKind.DOT: FusionKind.OUTPUT,
    KernelKind.ROW: FusionKind.INPUT,
    KernelKind.COLUMN: FusionKind.INPUT,
}


_WHOLE_ARRAY_KINDS = {
    "scatter": KernelKind.SCATTER,
    "select-and-scatter": KernelKind.SELECT_AND_SCATTER,
    "sort": KernelKind.SORT,
    "topk": KernelKind.TOP,
    "fft": KernelKind.FFT,
    "cholesky": KernelKind.CHOLESKY,
    "triangular-solve": KernelKind.TRIANGULAR_SOLVE,
}
_LAPACK_KINDS = {
    "potrf": KernelKind.CHOLESKY,
    "getrf": KernelKind.LU,
    "geqrf": KernelKind.QR,
    "orgqr": KernelKind.REFLECTIONS,
    "ormqr": KernelKind.REFLECTIONS,
    "syevd": KernelKind.EIGH,
    "gesdd": KernelKind.SVD,
    "gehrd": KernelKind.HESSENBERG,
    "sytrd": KernelKind.TRIDIAGONAL,
    "geqp3": KernelKind.PIVOTED_QR,
    "gees": KernelKind.SCHUR,
    "geev": KernelKind.EIG,
    "gtsv": KernelKind.TRIDIAGONAL_SOLVE,
}


def whole_array_kind(instruction: HloInstruction) -> KernelKind | None:
    """The kind for an operation whose elements cannot be computed one by one; no other kind computes these."""
    if instruction.opcode == "custom-call":
        from xlalite.hlo.ops.rules.lapack_calls import lapack_call

        asked = lapack_call(instruction)
        return None if asked is None else _LAPACK_KINDS.get(asked.routine)
    return _WHOLE_ARRAY_KINDS.get(instruction.opcode)


@dataclass(frozen=True, slots=True)
class KernelShape:
    """A kernel that may compute something.

    Attributes:
        kind: Of what kind it is.
        domain: What it walks over.
        places: Where it reads its instructions.
    """

    kind: KernelKind
    domain: Domain
    places: Mapping[HloInstruction, Place]


def kernel_shapes(body: HloComputation, fusion_kind: FusionKind | None = None) -> Iterator[KernelShape]:
    """The kernels that may compute a body, the preferred one first and a loop, where one is possible, last.

    Args:
        body: Parameters are arrays in memory, the root (or its tuple's operands) are the results.
        fusion_kind: What fusion made it for, whose kinds are preferred; None if it is no fusion's.
    """
    found = list(kernel_domains(body.root, body.instructions))
    if body.root.opcode == "pad":  # of what lies in memory, which is up to fusion
        found.append((KernelKind.ZERO_PAD, Domain(body.root.shape.dims)))
    found.sort(key=lambda one: one[0] is KernelKind.LOOP or one[0].fusion_kind is not fusion_kind)
    for kind, domain in found:
        results = {result: place_of_result(result_dims(result), domain) for result in results_of(body)}
        yield KernelShape(kind, domain, find_places(reversed(body.post_order()), results, domain))


def kernel_domains(root: HloInstruction, members: Collection[HloInstruction]) -> Iterator[tuple[KernelKind, Domain]]:
    """The kinds of kernels that may compute members for the sake of a root, and what each walks over, by precedence."""
    whole = Domain(result_dims(root.operand(0) if root.opcode == "tuple" and root.operands else root))
    if root.opcode == "dynamic-update-slice":
        yield KernelKind.UPDATE, Domain(root.operand(1).shape.dims)
    kind = whole_array_kind(root)
    if kind is not None:
        yield kind, whole
        return
    if root.opcode == "transpose" and is_turned_in_tiles(root):
        yield KernelKind.TRANSPOSE, whole
    if root.opcode == "concatenate":
        yield KernelKind.CONCATENATE, whole
    products = sum(map(is_matrix_product, members))
    if products:
        yield (KernelKind.DOT if products == 1 else KernelKind.CHAIN), whole
    if is_in_phases(root):
        yield KernelKind.PHASES, whole
    reduce = next((member for member in members if member.opcode == "reduce"), None)
    if reduce is not None:
        domain = reduced_domain(reduce)
        yield (KernelKind.ROW if domain.has_minor_columns else KernelKind.COLUMN), domain
    if accumulated_dimension(root) is not None:
        yield KernelKind.CUMULATIVE, whole
    if any(map(is_grouped_convolution, members)):
        yield KernelKind.CONVOLUTION, whole
    yield KernelKind.LOOP, whole


def results_of(body: HloComputation) -> tuple[HloInstruction, ...]:
    """The instructions whose arrays a kernel writes: the root, or a tuple root's operands, or a variadic reduce."""
    root = body.root
    return root.operands if root.opcode == "tuple" else (root,)


def result_dims(result: HloInstruction) -> tuple[int, ...]:
    """Sizes of a result; those of a variadic reduce are all equal."""
    shape = result.shape
    return shape.elements[0].dims if shape.is_tuple and shape.elements else shape.dims
