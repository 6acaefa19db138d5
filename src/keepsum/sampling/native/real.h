/* Functions of real numbers by additions, multiplications and divisions alone, each of which IEEE 754 defines to the
 * last bit: so they are the same on every processor, whatever its libm, and their errors are those stated here, if
 * rounding is to nearest and no product is contracted (-ffp-contract=off). u is 2^-53, the error of one operation;
 * tests/sampling/core/test_real.py compares them with ball arithmetic.
 */
#ifndef KEEPSUM_REAL_H
#define KEEPSUM_REAL_H
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels.h"

_Static_assert(FLT_EVAL_METHOD == 0, "every operation is rounded to a double");
#ifdef __FAST_MATH__
#error "operations must be those that are written"
#endif

INNER u64 bits_of(double x) {
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INNER double double_of(u64 bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n, for n from -1022 to 1023. */
INNER double power_of_two(i64 n) { return double_of((u64)(n + 1023) << 52); }

/* The largest whole number up to x, if |x| is below 2^63. */
INNER i64 floor_of(double x) {
    i64 whole = (i64)x;
    return whole - ((double)whole > x);
}

/* The square root, which is an instruction. */
INNER double root_of(double x) { return __builtin_sqrt(x); }

/* 2^(j/32) to the nearest. */
static const double PARTS_OF_TWO[32] = {
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0,
    0x1.172b83c7d517bp+0, 0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0,
    0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0, 0x1.3dea64c123422p+0, 0x1.44e086061892dp+0,
    0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0, 0x1.6247eb03a5585p+0,
    0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0,
    0x1.ae89f995ad3adp+0, 0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0,
    0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0, 0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0,
};

/* exp(x), right to a share of 1.1 * 2^-52, and up to 2^-1074 where it is below 2^-1022.
 *
 * With n the whole number nearest to x / h, h = log(2) / 32, exp(x) = 2^(n/32) exp(r), r = x - n h, where |r| is below
 * 0.0109 < 2^-6.5. HIGH has 36 bits and n at most 16, so n HIGH is exact, and so is x - n HIGH: for n = 0 there is
 * nothing to take off; else both are multiples of 2^-59, and the difference is less than 2^-6. n LOW is below 2^-28 and
 * errs by less than 2^-80 (LOW itself by 2^-98 for each of n), so r errs by u 2^-7 = 2^-60, the last rounding. With the
 * square and what follows it below 2^-14 and off by at most 6 u of that, and the sum rounded, exp(r) - 1 errs by
 * 2^-60 + 2^-64 + 2^-60, and by the terms left out, r^7 / 5040 and less, 2^-57.9 in all: together less than 2^-57.2.
 * The factor 2^(j/32) errs by a share of u, its product with exp(r) - 1 by u 2^-6.5, and their sum by u: a share of
 * 2 u + 2^-57.2 + 2^-59.5 < 1.1 * 2^-52. The power of two is exact, but for one rounding below 2^-1022. */
INNER double exp_of(double x) {
    const double HIGH = 0x1.62e42fefa0000p-6, LOW = 0x1.cf79abc9e3b3ap-45; /* of log(2) / 32 */
    const double PER = 0x1.71547652b82fep+5, ROUND = 0x1.8p52;             /* adding ROUND rounds to a whole number */
    if (x < -746.0) return 0.0;
    if (x > 710.0) return INFINITY;
    double rounded = x * PER + ROUND;
    i64 n = (i64)(bits_of(rounded) - bits_of(ROUND)); /* the same exponent: a unit of the last place is 1 */
    double whole = rounded - ROUND;
    double r = (x - whole * HIGH) - whole * LOW;
    double square = r * r;
    double rest = (0.5 + r * (1.0 / 6.0)) + square * ((1.0 / 24.0 + r * (1.0 / 120.0)) + square * (1.0 / 720.0));
    double part = PARTS_OF_TWO[n & 31], value = part + part * (r + square * rest);
    i64 k = n >> 5;
    if (k > -1022 && k < 1023) return value * power_of_two(k);
    return value * power_of_two(k >> 1) * power_of_two(k - (k >> 1));
}

/* (atanh(s) - s) / s for |s| up to 0.1716, with z = s^2: the terms left out are below 2^-60. */
INNER double atanh_rest(double z) {
    double fourth = z * z;
    double low = (1.0 / 3.0 + z * (1.0 / 5.0)) + fourth * (1.0 / 7.0 + z * (1.0 / 9.0));
    double high = (1.0 / 11.0 + z * (1.0 / 13.0)) + fourth * (1.0 / 15.0 + z * (1.0 / 17.0));
    double last = 1.0 / 19.0 + z * (1.0 / 21.0);
    double eighth = fourth * fourth;
    return z * (low + eighth * (high + eighth * last));
}

/* log(x), right to a share of 2^-50; -infinity for 0.
 *
 * x = 2^e m with m between the roots of 1/2 and 2, log m = 2 atanh(s), s = (m - 1) / (m + 1). m - 1 is exact, so s errs
 * by a share of 2 u, atanh(s) by at most 1.04 times that, the factor 1 + rest by 1.1 u, and the product by u: log m
 * errs by a share of 4.3 u. For e = 0 that is all. Else e HIGH is exact (HIGH has 40 bits), e LOW + log m errs by
 * 4.3 u 0.3466 + u 0.35, the sum by u of itself, and it is at least 0.3466: a share of less than 7 u. */
INNER double log_of(double x) {
    const double HIGH = 0x1.62e42fefa4000p-1, LOW = -0x1.8432a1b0e2634p-43; /* of log(2) */
    if (!(x > 0.0)) return x < 0.0 ? (double)NAN : x == 0.0 ? -INFINITY : x;
    if (x > 0x1.fffffffffffffp1023) return x;
    i64 e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        e = -54;
    }
    /* The digits behind the point of the root of 1/2 taken off, the exponent of x is that of 2^e. */
    u64 bits = bits_of(x), above = bits - 0x3fe6a09e667f3bcdu;
    i64 power = (i64)above >> 52;
    double m = double_of(bits - ((u64)power << 52));
    e += power;
    double s = (m - 1.0) / (m + 1.0);
    double log_m = 2.0 * s * (1.0 + atanh_rest(s * s));
    return (double)e * HIGH + ((double)e * LOW + log_m);
}

/* log(1 + x), right to a share of 2^-50, for x above -1.
 *
 * Up to 0.25 either way it is 2 atanh(s), s = x / (2 + x), as in `log_of`. Else it is the logarithm of y, 1 + x as it is
 * rounded, and (1 + x - y) / y more, of which only the square, below u^2, is left out; |log| is at least 0.22 there. */
INNER double log1p_of(double x) {
    if (x > -0.25 && x < 0.25) {
        double s = x / (2.0 + x);
        return 2.0 * s * (1.0 + atanh_rest(s * s));
    }
    double y = 1.0 + x, lost = x > 1.0 ? 1.0 - (y - x) : x - (y - 1.0);
    double log_y = log_of(y);
    return y > 0.0 && y <= 0x1.fffffffffffffp1023 ? log_y + lost / y : log_y;
}

/* cos(2 pi t), up to 2^-48, for |t| below 2^51.
 *
 * It is 1 - 2 sin(a)^2 with a = pi w, w = t less a whole number, which is exact, and |w| at most 1/2: |a| < 1.571. a
 * errs by a share of 1.35 u (pi and the product), and so sin(a) by 2.2 u; the powers beyond a^21 are below 2^-59; the
 * others behind a add up to less than 0.58 and err by a share of 6 u, 3.5 u; the last sum is rounded by u / 2. So the
 * sine errs by less than 6.3 u, twice its square by four times that and 2 u more, the difference by u: 28.2 u < 2^-48. */
INNER double cos_of_turns(double t) {
    double w = t - (double)floor_of(t + 0.5), a = 0x1.921fb54442d18p+1 * w, z = a * a;
    double rest = -1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0
        + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0
        + z * (-1.0 / 121645100408832000.0 + z * (1.0 / 51090942171709440000.0)))))))));
    double sine = a + a * z * rest;
    return 1.0 - 2.0 * sine * sine;
}

#endif
