/* Another processor's mathematical functions, for tests/test_processors.py: each result is one unit in its last place
 * too large, too small, or right, as the bits of its argument and the number in KEEPSUM_OTHER say. Loaded before the
 * system's own library (LD_PRELOAD), it stands for any libm that is as good as libms are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double off_by_one(double argument, double result) {
    uint64_t bits;
    const char *number = getenv("KEEPSUM_OTHER");
    if (!isfinite(result) || result == floor(result)) return result;
    memcpy(&bits, &argument, 8);
    bits ^= (number ? strtoull(number, 0, 10) : 0) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ bits >> 31) * 0xBF58476D1CE4E5B9u;
    switch ((bits ^ bits >> 29) % 3) {
    case 0: return nextafter(result, INFINITY);
    case 1: return nextafter(result, -INFINITY);
    default: return result;
    }
}

#define OTHER(name)                                                          \
    double name(double x) {                                                  \
        static double (*right)(double);                                      \
        if (!right) right = (double (*)(double))dlsym(RTLD_NEXT, #name);     \
        return off_by_one(x, right(x));                                      \
    }

OTHER(exp)
OTHER(exp2)
OTHER(expm1)
OTHER(log)
OTHER(log2)
OTHER(log1p)
OTHER(cos)
OTHER(sin)

double pow(double x, double y) {
    static double (*right)(double, double);
    if (!right) right = (double (*)(double, double))dlsym(RTLD_NEXT, "pow");
    return off_by_one(x + y, right(x, y));
}
