/* The functions of real.h, for many numbers at once, so that core/test_real.py can call them. */
#include "real.h"

#define FOR_ALL(name, function, Out)                                                       \
    KERNEL i64 name(const Floats *numbers, const Out *values) {                            \
        for (i64 i = 0; i < values->size; i++) AT(*values, i) = function(AT(*numbers, i)); \
        return DONE;                                                                       \
    }

FOR_ALL(exponentials, exp_of, OutFloats)
FOR_ALL(logarithms, log_of, OutFloats)
FOR_ALL(logarithms_above_one, log1p_of, OutFloats)
FOR_ALL(cosines_of_turns, cos_of_turns, OutFloats)
FOR_ALL(roots, root_of, OutFloats)
FOR_ALL(floors, floor_of, OutInts)
