"""The enums of XLA's messages: which number stands for which word."""

_ENUMS = """
PrimitiveType:
    0 PRIMITIVE_TYPE_INVALID; 1 PRED; 2 S8; 3 S16; 4 S32; 5 S64; 6 U8; 7 U16; 8 U32; 9 U64; 10 F16; 11 F32; 12 F64;
    13 TUPLE; 14 OPAQUE_TYPE; 15 C64; 16 BF16; 17 TOKEN; 18 C128; 19 F8E5M2; 20 F8E4M3FN; 21 S4; 22 U4;
    23 F8E4M3B11FNUZ; 24 F8E5M2FNUZ; 25 F8E4M3FNUZ; 26 S2; 27 U2; 28 F8E4M3; 29 F8E3M4; 30 S1; 31 U1; 32 F4E2M1FN;
    33 F8E8M0FNU; 34 BUFFER; 35 F6E3M2FN; 36 F6E2M3FN
ProfileType:
    0 INVALID; 1 WINDOW; 2 FLAG; 3 INTEGER
TriangularSolveOptions.Transpose:
    0 TRANSPOSE_INVALID; 1 NO_TRANSPOSE; 2 TRANSPOSE; 3 ADJOINT
OpSharding.Type:
    0 REPLICATED; 1 MAXIMAL; 2 TUPLE; 3 OTHER; 4 MANUAL; 5 UNKNOWN; 6 UNREDUCED
OpSharding.ShardGroupType:
    0 AS; 1 LIKE
ResultAccuracy.Mode:
    0 DEFAULT; 1 HIGHEST
PrecisionConfig.Precision:
    0 DEFAULT; 1 HIGH; 2 HIGHEST; 3 PACKED_NIBBLE
PrecisionConfig.Algorithm:
    0 ALG_UNSET; 1 ALG_DOT_ANY_F8_ANY_F8_F32; 2 ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM; 3 ALG_DOT_F16_F16_F16;
    4 ALG_DOT_F16_F16_F32; 5 ALG_DOT_BF16_BF16_BF16; 6 ALG_DOT_BF16_BF16_F32; 7 ALG_DOT_BF16_BF16_F32_X3;
    8 ALG_DOT_BF16_BF16_F32_X6; 9 ALG_DOT_TF32_TF32_F32; 10 ALG_DOT_TF32_TF32_F32_X3; 11 ALG_DOT_F32_F32_F32;
    12 ALG_DOT_F64_F64_F64; 13 ALG_DOT_BF16_BF16_F32_X9
RandomDistribution:
    0 RNG_INVALID; 1 RNG_UNIFORM; 2 RNG_NORMAL
FftType:
    0 FFT; 1 IFFT; 2 RFFT; 3 IRFFT
RandomAlgorithm:
    0 RNG_DEFAULT; 1 RNG_THREE_FRY; 2 RNG_PHILOX
PaddingType:
    0 PADDING_INVALID; 1 PADDING_VALID; 2 PADDING_SAME
CustomCallSchedule:
    0 SCHEDULE_NONE; 1 SCHEDULE_LATEST; 2 SCHEDULE_EARLIEST
CustomCallApiVersion:
    0 API_VERSION_UNSPECIFIED; 1 API_VERSION_ORIGINAL; 2 API_VERSION_STATUS_RETURNING;
    3 API_VERSION_STATUS_RETURNING_UNIFIED; 4 API_VERSION_TYPED_FFI
TriState:
    0 TRI_STATE_UNSPECIFIED; 1 TRI_STATE_TRUE; 2 TRI_STATE_FALSE
Kind:
    0 UNDEFINED_ALIAS; 1 MAY_ALIAS; 2 MUST_ALIAS
"""


def _read(table: str) -> dict[str, dict[int, str]]:
    enums: dict[str, dict[int, str]] = {}
    name = ""
    for line in table.strip().splitlines():
        if line.endswith(":"):
            name = line[:-1]
            enums[name] = {}
            continue
        for entry in filter(None, line.strip().split(";")):
            number, word = entry.split()
            enums[name][int(number)] = word
    return enums


ENUMS: dict[str, dict[int, str]] = {}
"""Words by number, for each enum."""

ENUM_NUMBERS: dict[str, dict[str, int]] = {}
"""Numbers by word, for each enum."""


def declare_enums(table: str) -> None:
    """Adds a table of enums: a line `name:`, then `number word; ...`."""
    for name, words in _read(table).items():
        ENUMS[name] = words
        ENUM_NUMBERS[name] = {word: number for number, word in words.items()}


declare_enums(_ENUMS)
