"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import NamedTuple

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import GeometricTable

GUIDE = 128  # places of a guide


class LawTables(NamedTuple):
    """Every law of a row below a node: weights, and how a sum y splits between the two children.

    A law l has the weights ``weights[weight_start[l] + |y|]`` up to ``weight_reach[l]``, each right up to
    ``weight_error``; none is larger than ``weight_top[l]``, and none beyond the reach larger than
    ``weight_beyond[l]``. If it is that of an inner node, with children ``left[l]`` and ``right[l]``, place
    ``place_start[l] + |y|`` of the other arrays is for y up to ``split_reach[l]``:

    - u, the sum below the left child, has the cumulative chances ``cumulative[cumulative_start + m]`` at every
      ``stride``-th value from ``lowest`` on, ``counts`` of them, each right up to ``slack``; ``guide`` says where to
      start looking; a weight W_L(u) W_R(y - u) times ``inverse`` is a chance;
    - no such weight is larger than ``peak``, whose chance is about ``peak_chance``;
    - ``numbers`` are t(y); ``transform`` and ``transform_imaginary`` are the characteristic function of u at the
      frequencies of the node, right up to ``transform_error``; ``log_dropped`` and ``log_growth`` bound the other
      frequencies and the tails.
    """

    weight_start: IntArray
    weight_reach: IntArray
    weight_top: Floats
    weight_beyond: Floats
    weights: Floats
    weight_error: Floats
    left: IntArray
    right: IntArray
    split_reach: IntArray
    place_start: IntArray
    cumulative_start: IntArray
    counts: IntArray
    lowest: IntArray
    slack: Floats
    inverse: Floats
    peak: Floats
    peak_chance: Floats
    numbers: Floats
    transform_start: IntArray
    transform_error: Floats
    log_dropped: Floats
    log_growth: Floats
    cumulative: Floats
    guide: IntArray
    transform: Floats
    transform_imaginary: Floats
    stride: int


class SplittingTables(NamedTuple):
    """A table whose columns are split by a tree.

    Node n has the children ``left[n]`` and ``right[n]``, and for rows of kind k the law ``law[n * kinds + k]``; nodes
    from ``inner`` on are leaves. Its characteristic functions are summed over ``frequencies[n]`` frequencies with the
    weights from ``measure_start[n]`` on; ``log_alias[n]`` belongs to the bound on what sums over these miss, and
    ``is_real[n]`` says that imaginary parts are 0.

    Entry e is that of ``entry_row`` and leaf ``entry_leaf`` and has ``entry_size`` cells from ``entry_start`` on; its
    negative parts have the mode ``entry_mode`` and are drawn by ``entry_method``.
    """

    laws: LawTables
    kinds: int
    kind_of_row: IntArray
    left: IntArray
    right: IntArray
    inner: int
    law: IntArray
    frequencies: IntArray
    measure_start: IntArray
    measure: Floats
    log_alias: Floats
    is_real: IntArray
    entry_row: IntArray
    entry_leaf: IntArray
    entry_size: IntArray
    entry_start: IntArray
    entry_mode: IntArray
    entry_method: IntArray
    geometric: GeometricTable
    rate: float
    width: int


class SplittingRoom(NamedTuple):
    """What a table writes on its way: the sums below each node, products of transforms, the parts of a region."""

    sums: IntArray
    product: Floats
    product_imaginary: Floats
    scratch: IntArray
