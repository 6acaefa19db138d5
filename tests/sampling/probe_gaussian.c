/* The factors of coordinates, for many at once, so that test_gaussian_thetas.py can call them. */
#include "gaussian_integers.c"

KERNEL i64 count_thetas(const Floats *variances, const Floats *phis, const OutFloats *there, const OutFloats *centred) {
    for (i64 i = 0; i < there->size; i++) {
        State state = {0};
        count_theta(&state, AT(*variances, i), AT(*phis, i));
        AT(*there, i) = state.log_theta;
        AT(*centred, i) = state.log_theta_centred;
    }
    return DONE;
}
