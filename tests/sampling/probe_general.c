/* What a proposal of the scale mixture is drawn by, so that tests can call it (proposals.py). */
#include "general_mixture.c"

KERNEL i64 try_log_theta(const double *phi, const double *square, const OutFloats *log_sum) {
    AT(*log_sum, 0) = log_theta(*phi, *square);
    return DONE;
}

KERNEL i64 try_integer(const double *uniform, const double *phi, const double *square, const double *log_sum) {
    return draw_integer(*uniform, *phi, *square, *log_sum);
}

KERNEL i64 try_unit(const u64 *word, const OutFloats *number) {
    AT(*number, 0) = unit(*word);
    return DONE;
}

KERNEL i64 try_inverse(
    const OutFloatMatrix *factor, const OutFloats *roots, const OutFloatMatrix *room, const OutFloatMatrix *out
) {
    invert_form(*factor, *roots, *room, *out);
    return DONE;
}
