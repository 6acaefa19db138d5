"""A lattice's Gram matrix, and its triangular factor: float for float the same on every processor.

What a proposal is defined by must not depend on how a linear-algebra library adds up. Here every entry takes its
products off one after the other, with one rounding each, in the order of the pivots: blocks of rows and vectors of
numbers change when an entry is worked on, never in which order. Matrices are symmetric, and only their upper triangles
are read and written.
"""

from __future__ import annotations

from keepsum.sampling.core.compiling import kernel

ROWS = 16  # that are worked on together, so that each row above is read once for all of them


@kernel
def add_products(pointers, columns, values, form, gram):
    """Gram += the sum over regions of the form times the products of the entries of vectors there."""
    for region in range(len(form)):
        for one in range(pointers[region], pointers[region + 1]):
            weighted = form[region] * values[one]
            row = columns[one]
            for other in range(one, pointers[region + 1]):
                gram[row, columns[other]] += weighted * values[other]


@kernel
def subtract_four(matrix, i, upper, k, first, second, third, fourth):
    """Take four rows of ``upper``, from row k on, times these numbers off row i, one after the other."""
    for j in range(i, len(matrix)):
        value = matrix[i, j] - first * upper[k, j]
        value -= second * upper[k + 1, j]
        value -= third * upper[k + 2, j]
        matrix[i, j] = value - fourth * upper[k + 3, j]


@kernel
def subtract_one(matrix, i, upper, k, number):
    """Take one row of ``upper`` times a number off row i."""
    if number != 0.0:
        for j in range(i, len(matrix)):
            matrix[i, j] -= number * upper[k, j]


@kernel
def factorise(matrix):
    """Overwrite a matrix with D L', L its unit lower factor; 0 if a pivot is not positive, else 1."""
    size = len(matrix)
    for start in range(0, size, ROWS):
        end = min(start + ROWS, size)
        for k in range(0, start, 4):
            for i in range(start, end):
                a, b, c, d = matrix[k, i], matrix[k + 1, i], matrix[k + 2, i], matrix[k + 3, i]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                    a, b = a / matrix[k, k], b / matrix[k + 1, k + 1]
                    c, d = c / matrix[k + 2, k + 2], d / matrix[k + 3, k + 3]
                    subtract_four(matrix, i, matrix, k, a, b, c, d)
        for k in range(start, end):
            if not matrix[k, k] > 0.0:
                return 0
            for i in range(k + 1, end):
                subtract_one(matrix, i, matrix, k, matrix[k, i] / matrix[k, k])
    return 1


@kernel
def subtract_form(matrix, upper, weights):
    """Matrix -= L diag(weights) L', L' the unit upper factor."""
    size = len(matrix)
    for start in range(0, size, ROWS):
        end = min(start + ROWS, size)
        for k in range(0, start, 4):
            for i in range(start, end):
                a, b, c, d = upper[k, i], upper[k + 1, i], upper[k + 2, i], upper[k + 3, i]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                    a, b, c, d = a * weights[k], b * weights[k + 1], c * weights[k + 2], d * weights[k + 3]
                    subtract_four(matrix, i, upper, k, a, b, c, d)
        for k in range(start, end):
            for i in range(k, end):
                subtract_one(matrix, i, upper, k, upper[k, i] * weights[k])
