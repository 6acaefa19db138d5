/* What the library says of itself and of the processor. */
#include "kernels.h"

#ifndef KEEPSUM_SOURCES
#define KEEPSUM_SOURCES "keepsum-sources:none"
#endif

/* A digest of the sources that this library was compiled from (build.py). */
KERNEL const char *const keepsum_sources = KEEPSUM_SOURCES;

#if defined(__x86_64__)
#include <cpuid.h>

/* Whether a processor and its system run x86-64-v3: AVX2, FMA, BMI and their like, and wide registers are kept. */
KERNEL i64 keepsum_runs_v3(void) {
    const unsigned SSE3_FMA_MOVBE_AVX_F16C = 1u | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22 |
                                             1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
    const unsigned BMI_AVX2_BMI2 = 1u << 3 | 1u << 5 | 1u << 8, LZCNT = 1u << 5;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & SSE3_FMA_MOVBE_AVX_F16C) != SSE3_FMA_MOVBE_AVX_F16C) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & BMI_AVX2_BMI2) != BMI_AVX2_BMI2) return 0;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || (c & LZCNT) != LZCNT) return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & 6) == 6;
}
#else
KERNEL i64 keepsum_runs_v3(void) { return 0; }
#endif
