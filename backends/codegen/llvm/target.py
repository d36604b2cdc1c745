"""What the code generator must know of the machine: vector registers, features, caches."""

from collections.abc import Iterable
from functools import cache

from xlalite.backends.codegen.llvm.library import ask, call, describing
from xlalite.hlo.errors import FlagError
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.host_caches import FALLBACK_CACHE_BYTES, host_cache_bytes
from xlalite.hlo.surroundings.matrix_registers import may_use_matrix_registers
from xlalite.passes.core.debug_options import CPU_ISAS


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A machine to generate code for.

    Attributes:
        triple: LLVM target triple.
        data_layout: LLVM data layout string.
        cpu: LLVM CPU name.
        features: names of the features that are on, sorted.
        feature_string: features as LLVM takes them; of this machine also those that are off, since a virtual machine
            may hide some that the CPU's name promises.
        vector_bits: width of a vector register.
        vector_registers: how many of them there are.
        cache_bytes: sizes of the L1 data, L2 and L3 caches of one core (fallback constants when unknown).
        cache_line_bytes: size of a cache line.
    """

    triple: str
    data_layout: str
    cpu: str
    features: tuple[str, ...]
    feature_string: str
    vector_bits: int
    vector_registers: int
    cache_bytes: tuple[int, int, int] = FALLBACK_CACHE_BYTES
    cache_line_bytes: int = 64

    @staticmethod
    def host(max_isa: str = "") -> "TargetInfo":
        """This machine; with `max_isa`, one of `CPU_ISAS`, as if it knew no newer vector instructions.

        Raises:
            FlagError: The machine is no x86-64.
        """
        return _restricted(_host(), max_isa) if max_isa else _host()

    @staticmethod
    def of(triple: str, cpu: str = "generic", features: tuple[str, ...] = ()) -> "TargetInfo":
        """Another machine, described by LLVM names; only listed features (`"avx2"`, `"fma"`) are relied on."""
        with describing:
            for part in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
                call(f"InitializeAll{part}")
        features = tuple(sorted(features))
        return _describe(triple, cpu, features, _switched_on(features))

    @property
    def has_fma(self) -> bool:
        """Whether `llvm.fma` of f32 and f64 is one instruction."""
        return "fma" in self.features or self.triple.startswith(("aarch64", "arm64", "riscv64", "powerpc64"))

    @property
    def has_roundings(self) -> bool:
        """Whether rounding f32 or f64 to an integral number is one instruction."""
        return "sse4.1" in self.features or not self.triple.startswith(("x86_64", "i386", "i686"))

    def lanes(self, bits: int) -> int:
        """Lanes of one vector register for elements of `bits` bits; elements under 8 bits count as bytes."""
        return max(1, self.vector_bits // max(bits, 8))

    def has(self, feature: str) -> bool:
        """Whether a feature, named as LLVM names it, is on."""
        return feature in self.features

    def create_machine(self, level: int = 2) -> int:
        """The address of a new LLVM target machine that makes position-independent code of a level of optimisation.

        Level 2 differs from 1 in that instructions are scheduled once more after registers are allocated, for
        processors whose model asks for it.
        """
        return _machine(self.triple, self.cpu, self.feature_string, level)


@cache
def _host() -> TargetInfo:
    with describing:
        call("InitializeNativeTarget")
        call("InitializeNativeAsmPrinter")
    known = {name[1:]: name[0] == "+" for name in _host_features().split(",") if name}
    if not may_use_matrix_registers():
        known.update(dict.fromkeys((name for name in known if name.startswith("amx-")), False))
    features = tuple(sorted(name for name, on in known.items() if on))
    feature_string = ",".join(f"{'-+'[on]}{name}" for name, on in sorted(known.items()))
    cpu, triple = ask("GetHostCPUName")[1], ask("GetProcessTriple")[1]
    return _describe(triple, cpu, features, feature_string, host_cache_bytes())


def _host_features() -> str:
    """All that LLVM knows of processors like this, `+` before what this one has."""
    return ask("GetHostCPUFeatures")[1]


_FEATURES_BY_ISA = {
    "SSE2": ("64bit", "cmov", "cx16", "cx8", "fxsr", "mmx", "sse", "sse2"),
    "SSE4_2": ("crc32", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "AVX": ("avx", "xsave"),
    "AVX2": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "AVX512": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
    "AVX512_VNNI": ("avx512vnni",),
    "AVX512_BF16": ("avx512bf16",),
    "AMX": ("amx-bf16", "amx-int8", "amx-tile", "avx512fp16"),
}


@cache
def _restricted(host: TargetInfo, max_isa: str) -> TargetInfo:
    if not host.triple.startswith("x86_64"):
        raise FlagError(f"xla_cpu_max_isa: {max_isa} is an instruction set of x86-64; this machine is {host.triple}")
    allowed: set[str] = set()
    for isa in CPU_ISAS[: CPU_ISAS.index(max_isa) + 1]:
        allowed.update(_FEATURES_BY_ISA[isa])
    features = tuple(name for name in host.features if name in allowed)
    return _describe(host.triple, "x86-64", features, _switched_on(features), host.cache_bytes)


def _describe(
    triple: str,
    cpu: str,
    features: tuple[str, ...],
    feature_string: str,
    cache_bytes: tuple[int, int, int] = FALLBACK_CACHE_BYTES,
) -> TargetInfo:
    bits, registers = 128, 16
    if "avx512f" in features and "avx512vl" in features:
        bits, registers = 512, 32
    elif "avx" in features:
        bits = 256
    elif triple.startswith(("aarch64", "arm64", "riscv64", "powerpc64")):
        registers = 32
    return TargetInfo(
        triple, _data_layout(triple, cpu, feature_string), cpu, features, feature_string, bits, registers, cache_bytes
    )


def _data_layout(triple: str, cpu: str, feature_string: str) -> str:
    machine = _machine(triple, cpu, feature_string)
    data = call("CreateTargetMachineData", machine)
    try:
        return ask("CopyStringRepOfTargetData", data)[1]
    finally:
        call("DisposeTargetData", data)
        call("DisposeTargetMachine", machine)


def _machine(triple: str, cpu: str, feature_string: str, level: int = 2) -> int:
    with describing:
        found, problem = ask("GetTargetFromTriple", triple.encode())
        if not found:
            raise RuntimeError(f"LLVM has no target for {triple}: {problem}")
        texts = triple.encode(), cpu.encode(), feature_string.encode()
        machine: int = call("CreateTargetMachine", found, *texts, level, b"pic", b"small", 0, 0, b"")
        return machine


def _switched_on(features: Iterable[str]) -> str:
    return ",".join("+" + feature for feature in features)
