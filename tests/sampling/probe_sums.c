/* Bounds on the chance of a sum, so that statistical/test_sum_laws.py can call them. */
#include "forced_sums.c"

KERNEL i64 try_chances(const SumTables *sums, const i64 *law, const i64 *total, const OutFloats *bounds) {
    Bounds found = chances(sums, *law, *total);
    AT(*bounds, 0) = found.low;
    AT(*bounds, 1) = found.high;
    return DONE;
}
