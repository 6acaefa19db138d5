/* A lattice's Gram matrix, and its triangular factor: float for float the same on every processor.
 *
 * What a proposal is defined by must not depend on how a linear-algebra library adds up. Here every entry takes its
 * products off one after the other, with one rounding each, in the order of the pivots: blocks of rows and vectors of
 * numbers change when an entry is worked on, never in which order. Matrices are symmetric, and only their upper
 * triangles are read and written.
 */
#include "gaussian_arguments.h"
#include "kernels.h"

enum { ROWS_AT_ONCE = 16 }; /* so that each row above is read once for all of them */

/* Gram += the sum over regions of the form times the products of the entries of vectors there. */
KERNEL i64 add_products(
    const Ints *pointers, const Ints *columns, const Floats *values, const Floats *form, const OutFloatMatrix *gram
) {
    for (i64 region = 0; region < form->size; region++) {
        i64 end = AT(*pointers, region + 1);
        for (i64 one = AT(*pointers, region); one < end; one++) {
            double weighted = AT(*form, region) * AT(*values, one);
            i64 row = AT(*columns, one);
            for (i64 other = one; other < end; other++) {
                CELL(*gram, row, AT(*columns, other)) += weighted * AT(*values, other);
            }
        }
    }
    return DONE;
}

/* Four numbers that four rows are multiplied with. */
typedef struct { double first, second, third, fourth; } Four;

/* Take four rows of `upper`, from row k on, times these numbers off row i, one after the other. */
static void subtract_four(OutFloatMatrix matrix, i64 i, FloatMatrix upper, i64 k, Four by) {
    double *restrict row = ROW(matrix, i);
    const double *restrict first = ROW(upper, k), *restrict second = ROW(upper, k + 1);
    const double *restrict third = ROW(upper, k + 2), *restrict fourth = ROW(upper, k + 3);
    for (i64 j = i; j < matrix.columns; j++) {
        double value = row[j] - by.first * first[j];
        value -= by.second * second[j];
        value -= by.third * third[j];
        row[j] = value - by.fourth * fourth[j];
    }
}

/* Take one row of `upper` times a number off row i. */
static void subtract_one(OutFloatMatrix matrix, i64 i, FloatMatrix upper, i64 k, double number) {
    if (number == 0.0) return;
    double *restrict row = ROW(matrix, i);
    const double *restrict other = ROW(upper, k);
    for (i64 j = i; j < matrix.columns; j++) row[j] -= number * other[j];
}

/* The entries of column i in four rows from row k on. */
INNER Four entries(FloatMatrix upper, i64 k, i64 i) {
    return (Four){CELL(upper, k, i), CELL(upper, k + 1, i), CELL(upper, k + 2, i), CELL(upper, k + 3, i)};
}

INNER bool all_zero(Four four) {
    return four.first == 0.0 && four.second == 0.0 && four.third == 0.0 && four.fourth == 0.0;
}

/* Overwrite a matrix with D L', L its unit lower factor; 0 if a pivot is not positive, else 1. */
KERNEL i64 factorise(const OutFloatMatrix *symmetric) {
    OutFloatMatrix matrix = *symmetric;
    FloatMatrix upper = {matrix.at, matrix.rows, matrix.columns};
    for (i64 start = 0; start < matrix.rows; start += ROWS_AT_ONCE) {
        i64 end = least(start + ROWS_AT_ONCE, matrix.rows);
        for (i64 k = 0; k < start; k += 4) {
            for (i64 i = start; i < end; i++) {
                Four four = entries(upper, k, i);
                if (all_zero(four)) continue;
                four.first /= CELL(upper, k, k);
                four.second /= CELL(upper, k + 1, k + 1);
                four.third /= CELL(upper, k + 2, k + 2);
                four.fourth /= CELL(upper, k + 3, k + 3);
                subtract_four(matrix, i, upper, k, four);
            }
        }
        for (i64 k = start; k < end; k++) {
            double pivot = CELL(upper, k, k);
            if (!(pivot > 0.0)) return 0;
            for (i64 i = k + 1; i < end; i++) subtract_one(matrix, i, upper, k, CELL(upper, k, i) / pivot);
        }
    }
    return 1;
}

/* Matrix -= L diag(weights) L', L' the unit upper factor. */
KERNEL i64 subtract_form(const OutFloatMatrix *matrix, const FloatMatrix *upper, const Floats *weights) {
    for (i64 start = 0; start < matrix->rows; start += ROWS_AT_ONCE) {
        i64 end = least(start + ROWS_AT_ONCE, matrix->rows);
        for (i64 k = 0; k < start; k += 4) {
            for (i64 i = start; i < end; i++) {
                Four four = entries(*upper, k, i);
                if (all_zero(four)) continue;
                four.first *= AT(*weights, k);
                four.second *= AT(*weights, k + 1);
                four.third *= AT(*weights, k + 2);
                four.fourth *= AT(*weights, k + 3);
                subtract_four(*matrix, i, *upper, k, four);
            }
        }
        for (i64 k = start; k < end; k++) {
            double weight = AT(*weights, k);
            for (i64 i = k; i < end; i++) subtract_one(*matrix, i, *upper, k, CELL(*upper, k, i) * weight);
        }
    }
    return DONE;
}
