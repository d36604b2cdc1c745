# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.math import (
    abs as abs, acos as acos, add as add, add_n as add_n, argmax as argmax, argmin as argmin, asin as asin,
    atan as atan, atan2 as atan2, ceil as ceil, conj as conj, cos as cos, cosh as cosh, cumprod as cumprod,
    cumsum as cumsum, div_no_nan as div_no_nan, divide as divide, equal as equal, erf as erf, exp as exp,
    expm1 as expm1, floor as floor, floordiv as floordiv, floormod as floormod, greater as greater,
    greater_equal as greater_equal, imag as imag, is_finite as is_finite, is_inf as is_inf, is_nan as is_nan,
    less as less, less_equal as less_equal, log as log, log1p as log1p, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, matmul as matmul,
    maximum as maximum, minimum as minimum, mod as mod, multiply as multiply, negative as negative,
    not_equal as not_equal, pow as pow, real as real, realdiv as realdiv, reciprocal as reciprocal,
    reduce_all as reduce_all, reduce_any as reduce_any, reduce_logsumexp as reduce_logsumexp, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum,
    rint as rint, round as round, rsqrt as rsqrt, scalar_mul as scalar_mul, sigmoid as sigmoid, sign as sign,
    sin as sin, sinh as sinh, sqrt as sqrt, square as square, squared_difference as squared_difference,
    subtract as subtract, tan as tan, tanh as tanh, truediv as truediv, unsorted_segment_sum as unsorted_segment_sum,
    xlogy as xlogy
)
from xlalite.ops.functions.nn import (
    l2_normalize as l2_normalize, log_sigmoid as log_sigmoid, log_softmax as log_softmax, softmax as softmax,
    softplus as softplus, softsign as softsign, zero_fraction as zero_fraction
)
from xlalite.ops.functions.ordering import bucketize as bucketize, in_top_k as in_top_k, top_k as top_k
from xlalite.ops.functions.products import (
    accumulate_n as accumulate_n, count_nonzero as count_nonzero, cumulative_logsumexp as cumulative_logsumexp,
    reduce_euclidean_norm as reduce_euclidean_norm, reduce_std as reduce_std, reduce_variance as reduce_variance
)
from xlalite.ops.functions.segments import (
    bincount as bincount, confusion_matrix as confusion_matrix, segment_max as segment_max,
    segment_mean as segment_mean, segment_min as segment_min, segment_prod as segment_prod, segment_sum as segment_sum,
    unsorted_segment_max as unsorted_segment_max, unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min, unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
)
from xlalite.ops.functions.special import (
    acosh as acosh, angle as angle, approximate_equal as approximate_equal, asinh as asinh, atanh as atanh,
    bessel_i0 as bessel_i0, bessel_i0e as bessel_i0e, bessel_i1 as bessel_i1, bessel_i1e as bessel_i1e,
    betainc as betainc, complex as complex, digamma as digamma, erfc as erfc, erfinv as erfinv, igamma as igamma,
    igammac as igammac, lbeta as lbeta, lgamma as lgamma, multiply_no_nan as multiply_no_nan, ndtri as ndtri,
    nextafter as nextafter, polygamma as polygamma, polyval as polyval, xdivy as xdivy, xlog1py as xlog1py, zeta as zeta
)

