/* Dense triangular factors and their inverses, as every proposal of the scale mixture needs one for its own variances.
 *
 * A sum of products is four sums, of every fourth product, which are added in pairs at the end, and then the products
 * that are left over. Such sums are taken for four rows by two rows at a time: eight times four of them stay in
 * registers, and each number that is read serves several. Results do not depend on how many cores a machine has. No
 * proof rests on these factors: a proposal is weighed by the centres and widths that were used (general_mixture.c), and
 * what is proved of a form is verified (general/verified.py).
 */
#include "general.h"

typedef double Four __attribute__((vector_size(32))); /* four numbers, in whatever registers there are */

#define LOAD(four, from) memcpy(&(four), (from), sizeof(Four))
#define ADDED(four) (((four)[0] + (four)[1]) + ((four)[2] + (four)[3]))

/* The same matrix and the same numbers, to be read. */
INNER FloatMatrix read_matrix(OutFloatMatrix matrix) { return (FloatMatrix){matrix.at, matrix.rows, matrix.columns}; }
INNER Floats read_floats(OutFloats floats) { return (Floats){floats.at, floats.size}; }

/* The sum of products of two runs. */
INNER double dot_of(const double *one, const double *other, i64 count) {
    double total = 0.0;
    i64 k = 0;
    if (count >= 4) {
        Four sums = {0.0, 0.0, 0.0, 0.0};
        for (; k + 4 <= count; k += 4) {
            Four x, y;
            LOAD(x, one + k);
            LOAD(y, other + k);
            sums += x * y;
        }
        total = ADDED(sums);
    }
    for (; k < count; k++) total += one[k] * other[k];
    return total;
}

double dot(const double *one, const double *other, i64 count) { return dot_of(one, other, count); }

/* The sum over k of one[i, k] other[j, k], first <= k < last. */
INNER double product(FloatMatrix one, i64 i, FloatMatrix other, i64 j, i64 first, i64 last) {
    return dot_of(ROW(one, i) + first, ROW(other, j) + first, last - first);
}

/* out[i + a, j + b] -= the sum over k of one[i + a, k] other[j + b, k], first <= k < last, for a = 0, ..., 3, b = 0, 1. */
INNER void subtract_eight(
    OutFloatMatrix out, FloatMatrix one, FloatMatrix other, i64 i, i64 j, i64 first, i64 last
) {
    const double *x0 = ROW(one, i), *x1 = ROW(one, i + 1), *x2 = ROW(one, i + 2), *x3 = ROW(one, i + 3);
    const double *y0 = ROW(other, j), *y1 = ROW(other, j + 1);
    Four s00 = {0.0, 0.0, 0.0, 0.0}, s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
    i64 k = first;
    for (; k + 4 <= last; k += 4) {
        Four x, p, q;
        LOAD(p, y0 + k);
        LOAD(q, y1 + k);
        LOAD(x, x0 + k);
        s00 += x * p;
        s01 += x * q;
        LOAD(x, x1 + k);
        s10 += x * p;
        s11 += x * q;
        LOAD(x, x2 + k);
        s20 += x * p;
        s21 += x * q;
        LOAD(x, x3 + k);
        s30 += x * p;
        s31 += x * q;
    }
    double sums[4][2] = {
        {ADDED(s00), ADDED(s01)}, {ADDED(s10), ADDED(s11)}, {ADDED(s20), ADDED(s21)}, {ADDED(s30), ADDED(s31)}
    };
    for (; k < last; k++) {
        double p = y0[k], q = y1[k];
        sums[0][0] += x0[k] * p;
        sums[0][1] += x0[k] * q;
        sums[1][0] += x1[k] * p;
        sums[1][1] += x1[k] * q;
        sums[2][0] += x2[k] * p;
        sums[2][1] += x2[k] * q;
        sums[3][0] += x3[k] * p;
        sums[3][1] += x3[k] * q;
    }
    for (i64 a = 0; a < 4; a++) {
        CELL(out, i + a, j) -= sums[a][0];
        CELL(out, i + a, j + 1) -= sums[a][1];
    }
}

/* The same for b = 0, ..., 3. */
static void subtract_products(
    OutFloatMatrix out, FloatMatrix one, FloatMatrix other, i64 i, i64 j, i64 first, i64 last
) {
    subtract_eight(out, one, other, i, j, first, last);
    subtract_eight(out, one, other, i, j + 2, first, last);
}

/* Where rows i to i + 3 start, down to a multiple of four. */
INNER i64 start_of(Ints profile, i64 i) {
    i64 one = least(AT(profile, i), AT(profile, i + 1)), other = least(AT(profile, i + 2), AT(profile, i + 3));
    return least(one, other) / 4 * 4;
}

/* Entries start to end of a row of the factor, whose products before `first` have been taken off. */
INNER void finish_row(OutFloatMatrix matrix, OutFloats roots, i64 row, i64 first, i64 start, i64 end) {
    FloatMatrix factor = read_matrix(matrix);
    for (i64 j = start; j < end; j++) {
        double rest = CELL(matrix, row, j) - product(factor, row, factor, j, first, j);
        CELL(matrix, row, j) = rest * AT(roots, j);
    }
}

/* The diagonal entry of a row of the factor, whose products before `first` have been taken off. */
INNER void finish_diagonal(OutFloatMatrix matrix, OutFloats roots, i64 row, i64 first) {
    FloatMatrix factor = read_matrix(matrix);
    double square = CELL(matrix, row, row) - product(factor, row, factor, row, first, row);
    CELL(matrix, row, row) = root_of(larger(square, LEAST_SQUARE));
    AT(roots, row) = 1 / CELL(matrix, row, row);
}

/* The lower factor L of L L' in place; row i of both starts at profile[i]. `roots` are 1 over its diagonal.
 *
 * What lies before the start of a row, or beyond the diagonal in a square of four, must be 0, and stays so. */
void factor_form(OutFloatMatrix matrix, Ints profile, OutFloats roots) {
    FloatMatrix factor = read_matrix(matrix); /* as far as it is done */
    i64 size = profile.size, whole = size / 4 * 4;
    for (i64 i = 0; i < whole; i += 4) {
        i64 first = start_of(profile, i);
        for (i64 j = first; j < i; j += 4) {
            subtract_products(matrix, factor, factor, i, j, most(first, start_of(profile, j)), j);
            for (i64 row = i; row < i + 4; row++) finish_row(matrix, roots, row, j, j, j + 4);
        }
        subtract_products(matrix, factor, factor, i, i, first, i);
        for (i64 row = i; row < i + 4; row++) {
            for (i64 k = row + 1; k < i + 4; k++) CELL(matrix, row, k) = 0.0;
            finish_row(matrix, roots, row, i, i, row);
            finish_diagonal(matrix, roots, row, i);
        }
    }
    for (i64 row = whole; row < size; row++) {
        i64 first = AT(profile, row);
        for (i64 j = first; j < row; j++) {
            double rest = CELL(matrix, row, j) - product(factor, row, factor, j, most(first, AT(profile, j)), j);
            CELL(matrix, row, j) = rest * AT(roots, j);
        }
        finish_diagonal(matrix, roots, row, first);
    }
}

/* The columns of L^-1 as rows of `out`, and 0 before the diagonal. */
static void invert_lower(FloatMatrix factor, Floats roots, OutFloatMatrix out) {
    FloatMatrix columns = read_matrix(out); /* as far as they are done */
    i64 size = roots.size, whole = size / 4 * 4;
    for (i64 j = 0; j < size; j++) {
        for (i64 i = 0; i < size; i++) CELL(out, j, i) = 0.0;
        CELL(out, j, j) = AT(roots, j);
    }
    for (i64 j = 0; j < whole; j += 4) {
        for (i64 column = j; column < j + 4; column++) {
            for (i64 i = column + 1; i < j + 4; i++) {
                CELL(out, column, i) = -product(columns, column, factor, i, column, i) * AT(roots, i);
            }
        }
        for (i64 i = j + 4; i < whole; i += 4) {
            subtract_products(out, columns, factor, j, i, j, i);
            for (i64 column = j; column < j + 4; column++) {
                for (i64 k = i; k < i + 4; k++) {
                    double rest = CELL(out, column, k) - product(columns, column, factor, k, i, k);
                    CELL(out, column, k) = rest * AT(roots, k);
                }
            }
        }
        for (i64 i = whole; i < size; i++) {
            for (i64 column = j; column < j + 4; column++) {
                CELL(out, column, i) = -product(columns, column, factor, i, j, i) * AT(roots, i);
            }
        }
    }
    for (i64 column = whole; column < size; column++) {
        for (i64 i = column + 1; i < size; i++) {
            CELL(out, column, i) = -product(columns, column, factor, i, column, i) * AT(roots, i);
        }
    }
}

/* out = (L L')^-1, all of it, from the lower factor; `room` holds the columns of L^-1 as rows. */
void invert_form(OutFloatMatrix factor, OutFloats roots, OutFloatMatrix room, OutFloatMatrix out) {
    i64 size = roots.size, whole = size / 4 * 4;
    FloatMatrix columns = read_matrix(room);
    invert_lower(read_matrix(factor), read_floats(roots), room);
    for (i64 i = 0; i < size; i++) {
        for (i64 j = 0; j <= i; j++) CELL(out, i, j) = 0.0;
    }
    for (i64 i = 0; i < whole; i += 4) {
        for (i64 j = 0; j <= i; j += 4) subtract_products(out, columns, columns, i, j, i, size);
    }
    for (i64 i = whole; i < size; i++) {
        for (i64 j = 0; j <= i; j++) CELL(out, i, j) = -product(columns, i, columns, j, i, size);
    }
    for (i64 i = 0; i < size; i++) {
        for (i64 j = 0; j <= i; j++) {
            CELL(out, i, j) = -CELL(out, i, j);
            CELL(out, j, i) = CELL(out, i, j);
        }
    }
}

KERNEL i64 cholesky(const OutFloatMatrix *matrix, const Ints *profile, const OutFloats *roots) {
    factor_form(*matrix, *profile, *roots);
    return DONE;
}

KERNEL i64 invert_factor(const FloatMatrix *factor, const Floats *roots, const OutFloatMatrix *out) {
    invert_lower(*factor, *roots, *out);
    return DONE;
}
