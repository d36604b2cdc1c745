"""Custom calls of LAPACK, as jax writes them on CPUs: which routine they name, and whether they have its form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

Options = Mapping[str, int]
Dims = tuple[int, ...]

LAPACK_TYPES = {"s": DType.F32, "d": DType.F64, "c": DType.C64, "z": DType.C128}

_TARGET = r"lapack_([sdcz])(\w+)_ffi"
_OPTION = r"(\w+)\s*=\s*(-?\d{1,20}(?!\d)|true|false)"
_CHARACTERS = 128
_SAME = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "gesvd": "gesdd", "hetrd": "sytrd"}
_COMPLEX = {DType.F32: DType.C64, DType.F64: DType.C128}


@dataclass(frozen=True, slots=True)
class LapackCall:
    """A call that has the form of its routine.

    Attributes:
        routine: Its name without the letter of the element type; one name for routines that give the same.
        options: The numbers in `backend_config`; true is 1.
        batch: Sizes of the leading dimensions of all operands and results.
        sizes: Sizes of each operand without these.
        flops: Multiplications and additions for one matrix.
    """

    routine: str
    options: Options
    batch: Dims
    sizes: tuple[Dims, ...]
    flops: int

    def letter(self, name: str) -> str:
        """An option that is a letter; none if it is not there."""
        return letter_of(self.options, name)


@dataclass(frozen=True, slots=True)
class _Form:
    """What a routine takes and gives.

    Attributes:
        ranks: Ranks of the operands, without the batch.
        results: Sizes of the operands and options -> possible sizes of the results, () being those of `info`.
        flops: Sizes of the operands -> multiplications and additions.
        integers: Numbers of the results that are s32; all others have the element type.
        reals: Numbers of those that have the type of its real part.
        complexes: Numbers of those that have the complex type of this part.
        integer_operands: Numbers of the operands that are s32.
    """

    ranks: Dims
    results: Callable[[tuple[Dims, ...], Options], tuple[tuple[Dims, ...], ...]]
    flops: Callable[[tuple[Dims, ...]], int]
    integers: Dims = ()
    reals: Dims = ()
    complexes: Dims = ()
    integer_operands: Dims = ()


def lapack_call(instruction: HloInstruction) -> LapackCall | None:
    """What a custom-call asks of LAPACK; None if its target is no routine of the table, or it has another form."""
    target = re.fullmatch(_TARGET, instruction.attrs.custom_call_target)
    if target is None or instruction.has_side_effect:
        return None
    routine, dtype = _SAME.get(target[2], target[2]), LAPACK_TYPES[target[1]]
    form = (dtype.is_complex and _COMPLEX_FORMS.get(routine)) or _FORMS.get(routine)
    shapes = [operand.shape for operand in instruction.operands]
    if form is None or len(shapes) != len(form.ranks):
        return None
    operand_types = [DType.S32 if number in form.integer_operands else dtype for number in range(len(shapes))]
    if any(
        not shape.is_array or shape.dtype is not wanted or shape.is_dynamic
        for shape, wanted in zip(shapes, operand_types, strict=True)
    ):
        return None
    rank = shapes[0].rank - form.ranks[0]
    if rank < 0 or any(shape.rank != rank + own for shape, own in zip(shapes, form.ranks, strict=True)):
        return None
    if any(one.dims[:rank] != other.dims[:rank] for one, other in pairwise(shapes)):
        return None
    sizes, options = tuple(shape.dims[rank:] for shape in shapes), read_options(instruction)
    batch = shapes[0].dims[:rank]
    if any(not size for each in sizes for size in each):
        return None
    types = {**dict.fromkeys(form.integers, DType.S32), **dict.fromkeys(form.reals, dtype.component)}
    types |= dict.fromkeys(form.complexes, _COMPLEX.get(dtype, dtype))
    for wanted in form.results(sizes, options):
        results = [Shape.array(types.get(number, dtype), (*batch, *dims)) for number, dims in enumerate(wanted)]
        whole = results[0] if len(results) == 1 else Shape.tuple(results)
        if whole.compatible(instruction.shape):
            return LapackCall(routine, options, batch, sizes, form.flops(sizes))
    return None


def read_options(instruction: HloInstruction) -> Options:
    """The numbers in `backend_config`; true is 1."""
    words = {"true": 1, "false": 0}
    found = re.findall(_OPTION, instruction.backend_config)
    return {name: words[text] if text in words else int(text) for name, text in found}


def letter_of(options: Options, name: str) -> str:
    """The letter whose number an option is; the character 0 if it is not there, or is the number of none."""
    number = options.get(name, 0)
    return chr(number) if 0 <= number < _CHARACTERS else chr(0)


def _triangular_solution(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    (rows, columns), rhs = sizes
    is_left = options.get("side") == ord("L")
    has_letters = all(
        letter_of(options, name) in letters
        for name, letters in (("side", "LR"), ("uplo", "LU"), ("trans_x", "NTC"), ("diag", "NU"))
    )
    return ((rhs,),) if has_letters and rows == columns == rhs[0 if is_left else 1] else ()


def _cholesky_factor(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    return (((rows, rows), ()),) if rows == columns and letter_of(options, "uplo") in "LU" else ()


def _eigenvalues(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    has_letters = letter_of(options, "uplo") in "LU" and letter_of(options, "mode") in "NV"
    return (((rows, rows), (rows,), ()),) if has_letters and rows == columns else ()


def _singular_values(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    """All vectors, or as many as there are values; with neither, callers declare one or the other."""
    ((rows, columns),), mode = sizes, letter_of(options, "mode")
    k = min(rows, columns)
    forms = {
        letter: ((rows, columns), (k,), (rows, left), (right, columns), ())
        for letter, left, right in (("A", rows, columns), ("S", k, k))
    }
    return tuple(forms.values()) if mode == "N" else (forms[mode],) if mode in forms else ()


def _q(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    (rows, columns), (count,) = sizes
    return (((rows, columns),),) if count <= columns <= rows else ()


def _product_with_q(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    (rows, columns), (count,), other = sizes
    is_of_size = rows == other[0 if options.get("left", 1) else 1]
    return ((other,),) if is_of_size and count <= columns <= rows else ()


def _tridiagonal_solution(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    *diagonals, rhs = sizes
    return ((*diagonals, rhs, ()),) if all(each == rhs[:1] for each in diagonals) else ()


def _hessenberg(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    is_inside = 1 <= options.get("low", 1) <= options.get("high", rows) <= rows
    return (((rows, rows), (rows - 1,), ()),) if is_inside and rows == columns else ()


def _tridiagonal(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    is_one = letter_of(options, "uplo") in "LU" and rows == columns
    return (((rows, rows), (rows,), (rows - 1,), (rows - 1,), ()),) if is_one else ()


def _pivoted_factors(sizes: tuple[Dims, ...], options: Options) -> tuple[tuple[Dims, ...], ...]:
    matrix, order = sizes
    return ((matrix, order, (min(matrix),)),) if order == matrix[1:] else ()


def _schur_form(sizes: tuple[Dims, ...], options: Options, parts_of_values: int = 2) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    is_one = letter_of(options, "mode") in "NV" and options.get("sort", ord("N")) == ord("N") and rows == columns
    return (((rows, rows),) * 2 + ((rows,),) * parts_of_values + ((), ()),) if is_one else ()


def _general_eigenvalues(
    sizes: tuple[Dims, ...], options: Options, parts_of_values: int = 2
) -> tuple[tuple[Dims, ...], ...]:
    ((rows, columns),) = sizes
    letters = [letter_of(options, name) for name in ("compute_left", "compute_right")]
    is_one = all(letter in "NV" for letter in letters) and rows == columns
    return (((rows,),) * parts_of_values + ((rows, rows),) * 2 + ((),),) if is_one else ()


def _elimination_flops(sizes: tuple[Dims, ...]) -> int:
    rows, columns = sizes[0]
    steps = min(rows, columns)
    return 2 * rows * columns * steps - (rows + columns) * steps**2 + 2 * steps**3 // 3


def _schur_flops(sizes: tuple[Dims, ...]) -> int:
    return 25 * sizes[0][0] ** 3


_FORMS: Mapping[str, _Form] = {
    "trsm": _Form((2, 2), _triangular_solution, lambda sizes: sizes[0][0] * sizes[1][0] * sizes[1][1]),
    "potrf": _Form((2,), _cholesky_factor, lambda sizes: sizes[0][0] ** 3 // 3, integers=(1,)),
    "getrf": _Form(
        (2,), lambda sizes, options: ((sizes[0], (min(sizes[0]),), ()),), _elimination_flops, integers=(1, 2)
    ),
    "geqrf": _Form(
        (2,), lambda sizes, options: ((sizes[0], (min(sizes[0]),)),), lambda sizes: 2 * _elimination_flops(sizes)
    ),
    "gesdd": _Form(
        (2,), _singular_values, lambda sizes: 8 * sizes[0][0] * sizes[0][1] * min(sizes[0]), integers=(4,), reals=(1,)
    ),
    "orgqr": _Form((2, 1), _q, lambda sizes: 2 * _elimination_flops(sizes)),
    "syevd": _Form((2,), _eigenvalues, lambda sizes: 6 * sizes[0][0] ** 3, integers=(2,), reals=(1,)),
    "gehrd": _Form((2,), _hessenberg, lambda sizes: 10 * sizes[0][0] ** 3 // 3, integers=(2,)),
    "sytrd": _Form((2,), _tridiagonal, lambda sizes: 4 * sizes[0][0] ** 3 // 3, integers=(4,), reals=(1, 2)),
    "geqp3": _Form(
        (2, 1), _pivoted_factors, lambda sizes: 3 * _elimination_flops(sizes), integers=(1,), integer_operands=(1,)
    ),
    "gees": _Form((2,), _schur_form, _schur_flops, integers=(4, 5)),
    "geev": _Form((2,), _general_eigenvalues, _schur_flops, integers=(4,), complexes=(2, 3)),
    "gtsv": _Form(
        (1, 1, 1, 2), _tridiagonal_solution, lambda sizes: 8 * sizes[3][0] * (1 + sizes[3][1]), integers=(4,)
    ),
    "ormqr": _Form((2, 1, 2), _product_with_q, lambda sizes: 4 * sizes[1][0] * sizes[2][0] * sizes[2][1]),
}
_COMPLEX_FORMS: Mapping[str, _Form] = {
    "gees": _Form((2,), partial(_schur_form, parts_of_values=1), _schur_flops, integers=(3, 4)),
    "geev": _Form((2,), partial(_general_eigenvalues, parts_of_values=1), _schur_flops, integers=(3,)),
}
"""Those of routines that give the parts of complex numbers apart where matrices are real."""
