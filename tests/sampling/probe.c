/* Inline functions of kernels.h, so that test_native.py can call them. */
#include "kernels.h"

KERNEL i64 probe_floor_quotient(i64 a, i64 b) { return floor_quotient(a, b); }
KERNEL i64 probe_floor_remainder(i64 a, i64 b) { return floor_remainder(a, b); }
KERNEL i64 probe_bit_length(i64 value) { return bit_length(value); }
KERNEL double probe_lesser(double a, double b) { return lesser(a, b); }
KERNEL double probe_larger(double a, double b) { return larger(a, b); }
KERNEL double probe_unit_of(i64 bits) { return unit_of(bits); }
KERNEL i64 probe_compare(u64 word, i64 shift, double low, double high) { return compare(word, shift, low, high); }
KERNEL i64 probe_at(const Ints *array, i64 place) { return AT(*array, place); }
KERNEL i64 probe_cell(const IntMatrix *matrix, i64 row, i64 column) { return CELL(*matrix, row, column); }
KERNEL i64 probe_span(const Ints *array, i64 start, i64 count) { return SPAN(*array, start, count) - array->at; }
KERNEL i64 probe_look_up(u64 number, const Words *columns, i64 width, i64 *value) {
    Outcome drawn = look_up(number, *columns, width);
    *value = drawn.value;
    return drawn.tie < 0;
}
