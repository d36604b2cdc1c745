"""The table of functions, and the choice between code in place and a shared internal function."""

from collections.abc import Callable

from xlalite.backends.codegen.llvm import F32, F64, Function, FunctionBuilder, LLVMBuildError, Type, Value, number_of
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class MathFunction:
    """How one function is emitted.

    Attributes:
        place: where the function is that appends the instructions for f32 or f64 operands, without contraction.
        arity: number of operands.
        inlined: scalar types for which the code is short enough to stand where it is used; for the others a function of
            the module is defined once and called.
        places: in how many places of a module the code may stand; None for what is an instruction or two.
        is_short_of_known: whether the code is that short, too, if the first operand is a number that is known now.
    """

    place: str
    arity: int = 1
    inlined: tuple[Type, ...] = (F32,)
    places: int | None = 64
    is_short_of_known: bool = False

    @property
    def emit(self) -> Callable[..., Value]:
        """The function at the place, which is imported."""
        function: Callable[..., Value] = imported(self.place, __package__)
        return function


MATH_FUNCTIONS: dict[str, MathFunction] = {
    "exponential": MathFunction(".exponential:emit_exp", inlined=(F32, F64)),
    "exponential-few-denormals": MathFunction(".exponential:emit_exp_few_denormals", inlined=(F32, F64)),
    "exponential-minus-one": MathFunction(".exponential:emit_expm1"),
    "log": MathFunction(".logarithm:emit_log"),
    "log-plus-one": MathFunction(".logarithm:emit_log1p"),
    "tanh": MathFunction(".hyperbolic:emit_tanh"),
    "logistic": MathFunction(".hyperbolic:emit_logistic"),
    "sinh": MathFunction(".hyperbolic:emit_sinh"),
    "cosh": MathFunction(".hyperbolic:emit_cosh"),
    "erf": MathFunction(".error_function:emit_erf"),
    "sine": MathFunction(".trigonometric:emit_sin"),
    "cosine": MathFunction(".trigonometric:emit_cos"),
    "tan": MathFunction(".trigonometric:emit_tan"),
    "asin": MathFunction(".inverse_trigonometric:emit_asin"),
    "acos": MathFunction(".inverse_trigonometric:emit_acos"),
    "atan": MathFunction(".inverse_trigonometric:emit_atan"),
    "atan2": MathFunction(".inverse_trigonometric:emit_atan2", arity=2, inlined=()),
    "asinh": MathFunction(".inverse_hyperbolic:emit_asinh", inlined=()),
    "acosh": MathFunction(".inverse_hyperbolic:emit_acosh", inlined=()),
    "atanh": MathFunction(".inverse_hyperbolic:emit_atanh", inlined=()),
    "power": MathFunction(".power:emit_pow", arity=2, inlined=(), is_short_of_known=True),
    "remainder": MathFunction(".remainder:emit_remainder", arity=2, inlined=()),
    "cbrt": MathFunction(".roots:emit_cbrt"),
    "sqrt": MathFunction(".roots:emit_sqrt", inlined=(F32, F64), places=None),
    "rsqrt": MathFunction(".roots:emit_rsqrt", inlined=(F32, F64), places=None),
}


def emit_math(fb: FunctionBuilder, name: str, *arguments: Value) -> Value:
    """Appends a function of floating-point values (scalars or vectors, all of one type) and returns its result.

    The hot functions of f32 stand in place (12 to 40 instructions), unless a module has them in very many; long ones
    become an internal function of the module, defined once per type.

    Raises:
        LLVMBuildError: for an unknown name, a wrong number of operands or operands that are not all f32 or all f64.
    """
    function = MATH_FUNCTIONS.get(name)
    if function is None:
        raise LLVMBuildError(f"emit_math: no function {name!r}; there are {', '.join(MATH_FUNCTIONS)}")
    if len(arguments) != function.arity:
        raise LLVMBuildError(f"emit_math: {name} takes {function.arity} operands, got {arguments}")
    type_ = arguments[0].type
    if type_.scalar not in (F32, F64) or any(argument.type is not type_ for argument in arguments):
        raise LLVMBuildError(f"emit_math: {name} takes f32 or f64, got {arguments}")
    with fb.contraction(False):
        return _emit(fb, name, function, arguments)


def _emit(fb: FunctionBuilder, name: str, function: MathFunction, arguments: tuple[Value, ...]) -> Value:
    is_known = function.is_short_of_known and number_of(arguments[0]) is not None
    if (is_known or arguments[0].type.scalar in function.inlined) and _has_place(fb, name, function):
        return function.emit(fb, *arguments)
    return fb.call(_shared(fb, name, function, arguments[0].type), *arguments)


def _has_place(fb: FunctionBuilder, name: str, function: MathFunction) -> bool:
    """Whether one more place is few enough: LLVM would take long over hundreds of copies, which nothing calls often."""
    return function.places is None or fb.module.count_use(("math", name)) <= function.places


def _shared(fb: FunctionBuilder, name: str, function: MathFunction, type_: Type) -> Function:
    def define() -> Function:
        body = fb.module.function(
            fb.module.unique_name(f"xlalite.{name}.{type_.mangled}"),
            type_,
            (type_,) * function.arity,
            attributes=("nounwind", "willreturn", "memory(none)"),
            linkage="internal",
            contract=False,
        )
        body.ret(function.emit(body, *body.parameters))
        return body.function

    return fb.module.define_once(("math", name, type_), define)
