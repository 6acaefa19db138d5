"""Dense triangular factors and their inverses, as every proposal needs one for its own variances.

Sums of products are taken for four rows by four rows at a time: sixteen sums stay in registers, and each number that is
read serves four of them. Up to 150 coordinates that is faster than LAPACK, at 400 it takes 1.4 times as long, and it
makes no threads: results do not depend on how many cores a machine has. No proof rests on these factors: a proposal is
weighed by the centres and widths that were used (``mixture_kernels.propose``).
"""

from __future__ import annotations

import math

from keepsum.sampling.core.compiling import loose_kernel

LEAST_SQUARE = 1e-300  # what the square of a diagonal entry is taken to be where rounding makes it less


@loose_kernel
def subtract_products(out, one, other, i, j, first, last):
    """out[i + a, j + b] -= the sum over k of one[i + a, k] other[j + b, k], first <= k < last, for a, b = 0, ..., 3."""
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for k in range(first, last):
        x0, x1, x2, x3 = one[i, k], one[i + 1, k], one[i + 2, k], one[i + 3, k]
        y0, y1, y2, y3 = other[j, k], other[j + 1, k], other[j + 2, k], other[j + 3, k]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    out[i, j] -= s00
    out[i, j + 1] -= s01
    out[i, j + 2] -= s02
    out[i, j + 3] -= s03
    out[i + 1, j] -= s10
    out[i + 1, j + 1] -= s11
    out[i + 1, j + 2] -= s12
    out[i + 1, j + 3] -= s13
    out[i + 2, j] -= s20
    out[i + 2, j + 1] -= s21
    out[i + 2, j + 2] -= s22
    out[i + 2, j + 3] -= s23
    out[i + 3, j] -= s30
    out[i + 3, j + 1] -= s31
    out[i + 3, j + 2] -= s32
    out[i + 3, j + 3] -= s33


@loose_kernel
def product(one, i, other, j, first, last):
    """The sum over k of one[i, k] other[j, k], first <= k < last."""
    total = 0.0
    for k in range(first, last):
        total += one[i, k] * other[j, k]
    return total


@loose_kernel
def start_of(profile, i):
    """Where rows i to i + 3 start, down to a multiple of four."""
    return min(profile[i], profile[i + 1], profile[i + 2], profile[i + 3]) // 4 * 4


@loose_kernel
def cholesky(matrix, profile, roots):
    """The lower factor L of L L' in place; row i of both starts at profile[i]. ``roots`` are 1 over its diagonal.

    What lies before the start of a row, or beyond the diagonal in a square of four, must be 0, and stays so.
    """
    size = len(profile)
    whole = size // 4 * 4
    for i in range(0, whole, 4):
        first = start_of(profile, i)
        for j in range(first, i, 4):
            subtract_products(matrix, matrix, matrix, i, j, max(first, start_of(profile, j)), j)
            for row in range(i, i + 4):
                finish_row(matrix, roots, row, j, j, j + 4)
        subtract_products(matrix, matrix, matrix, i, i, first, i)
        for row in range(i, i + 4):
            for k in range(row + 1, i + 4):
                matrix[row, k] = 0.0
            finish_row(matrix, roots, row, i, i, row)
            finish_diagonal(matrix, roots, row, i)
    for row in range(whole, size):
        first = profile[row]
        for j in range(first, row):
            matrix[row, j] -= product(matrix, row, matrix, j, max(first, profile[j]), j)
            matrix[row, j] *= roots[j]
        finish_diagonal(matrix, roots, row, first)


@loose_kernel
def finish_row(matrix, roots, row, first, start, end):
    """Entries start to end of a row of the factor, whose products before ``first`` have been taken off."""
    for j in range(start, end):
        matrix[row, j] = (matrix[row, j] - product(matrix, row, matrix, j, first, j)) * roots[j]


@loose_kernel
def finish_diagonal(matrix, roots, row, first):
    """The diagonal entry of a row of the factor, whose products before ``first`` have been taken off."""
    square = matrix[row, row] - product(matrix, row, matrix, row, first, row)
    matrix[row, row] = math.sqrt(max(square, LEAST_SQUARE))
    roots[row] = 1 / matrix[row, row]


@loose_kernel
def invert(factor, roots, room, out):
    """Out = (L L')^-1, all of it, from the lower factor; ``room`` holds the columns of L^-1 as rows."""
    size = len(roots)
    invert_factor(factor, roots, room)
    whole = size // 4 * 4
    for i in range(size):
        for j in range(i + 1):
            out[i, j] = 0.0
    for i in range(0, whole, 4):
        for j in range(0, i + 1, 4):
            subtract_products(out, room, room, i, j, i, size)
    for i in range(whole, size):
        for j in range(i + 1):
            out[i, j] = -product(room, i, room, j, i, size)
    for i in range(size):
        for j in range(i + 1):
            out[i, j] = -out[i, j]
            out[j, i] = out[i, j]


@loose_kernel
def invert_factor(factor, roots, out):
    """The columns of L^-1 as rows of ``out``, and 0 before the diagonal."""
    size = len(roots)
    whole = size // 4 * 4
    for j in range(size):
        for i in range(size):
            out[j, i] = 0.0
        out[j, j] = roots[j]
    for j in range(0, whole, 4):
        for column in range(j, j + 4):
            for i in range(column + 1, j + 4):
                out[column, i] = -product(out, column, factor, i, column, i) * roots[i]
        for i in range(j + 4, whole, 4):
            subtract_products(out, out, factor, j, i, j, i)
            for column in range(j, j + 4):
                for k in range(i, i + 4):
                    out[column, k] = (out[column, k] - product(out, column, factor, k, i, k)) * roots[k]
        for i in range(whole, size):
            for column in range(j, j + 4):
                out[column, i] = -product(out, column, factor, i, j, i) * roots[i]
    for column in range(whole, size):
        for i in range(column + 1, size):
            out[column, i] = -product(out, column, factor, i, column, i) * roots[i]
