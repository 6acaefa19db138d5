"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import OutFloats, OutIntMatrix, OutInts, Task
from keepsum.sampling.l1.kernel_arguments import NoiseTable, SumTables

GUIDE = 128  # places of a guide
# The phases of a table: the base of the root; of a node, its rows, the row that is solved for, and the labels and
# factors of both children; the cells.
PICK_ROOT, DRAW_ROWS, ACCEPT_ROW, LABEL_LEFT, ACCEPT_LEFT, LABEL_RIGHT, ACCEPT_RIGHT, FILL = range(8)
OFFSET = 1 << 40  # answers must not be negative, sums may be


class SplitTables(NamedTuple):
    """Weights of sums, and how a sum y splits between two children, for all bases of all nodes and all laws of rows.

    Weights w are ``weights[weight_start[w] + |y|]`` up to ``weight_reach[w]``, each right up to ``weight_error``; none
    is larger than ``weight_top[w]``, and none beyond the reach larger than ``weight_beyond[w]``. A split s has the
    weights ``left[s]`` and ``right[s]``, and place ``place_start[s] + |y|`` of the other arrays is for y up to
    ``reach[s]``:

    - u, the sum below the left child, has the cumulative chances ``cumulative[cumulative_start + m]`` at every
      ``stride``-th value from ``lowest`` on, ``counts`` of them, each right up to ``slack``; ``guide`` says where to
      start looking; a weight W_L(u) W_R(y - u) times ``inverse`` is a chance;
    - no such weight is larger than ``peak``, whose chance is about ``peak_chance``;
    - ``log_numbers`` are log t_m(y), from ``number_start`` on; ``transform`` and ``transform_imaginary``, from
      ``transform_start`` on, are the characteristic function of u at the frequencies of the node, right up to
      ``transform_error``; ``log_dropped`` and ``log_growth`` bound the other frequencies and the tails.
    """

    weight_start: IntArray
    weight_reach: IntArray
    weight_top: Floats
    weight_beyond: Floats
    weights: Floats
    weight_error: Floats
    left: IntArray
    right: IntArray
    reach: IntArray
    place_start: IntArray
    cumulative_start: IntArray
    counts: IntArray
    lowest: IntArray
    slack: Floats
    inverse: Floats
    peak: Floats
    peak_chance: Floats
    number_start: IntArray
    transform_start: IntArray
    transform_error: Floats
    log_dropped: Floats
    log_growth: Floats
    cumulative: Floats
    guide: IntArray
    log_numbers: Floats
    transform: Floats
    transform_imaginary: Floats
    stride: int


class GroupTables(NamedTuple):
    """The labels of the groups of all nodes, those that differ only in which child is which as one with 2 ``copies``.

    Group g has the labels from ``start[g]`` to ``start[g + 1]``, each with its ``base`` and ``copies``. Place
    ``law_start[g] + k`` is for its law k of rows: there the logarithms of the labels' weights relative to those of the
    group, for a sum y up to ``reach``, start at ``ratios[ratio_start + |y| * (labels + 1)]``; the last number of each
    such row is the largest error of the others.
    """

    start: IntArray
    base: IntArray
    copies: IntArray
    reach: IntArray
    law_start: IntArray
    ratio_start: IntArray
    ratios: Floats


class SplittingTables(NamedTuple):
    """A table whose columns are split by a tree.

    Node n has the children ``left[n]`` and ``right[n]``; nodes from ``inner`` on are leaves. Rows of kind k have its
    law ``law[n * kinds + k]``, of ``law_count[n]``. Its base b consists of the groups ``base_left`` and ``base_right``
    of its children, at place ``base_start[n] + b``, and its splits start at ``split_start[n]``, base by base. Its
    groups start at ``group_start[n]``. Characteristic functions are summed over ``frequencies[n]`` frequencies with the
    weights from ``measure_start[n]`` on; there are ``blocks[n]`` blocks of numbers t. ``log_alias[n]`` belongs to the
    bound on what sums over frequencies miss, and ``is_real[n]`` says that imaginary parts are 0 where both groups of a
    base are the same. The base of the root has the cumulative chances ``root_chances``, right up to ``root_error``.

    Entry e is that of ``entry_row`` and leaf ``entry_leaf`` and has ``entry_size`` cells from ``entry_start`` on; its
    negative parts have the mode ``entry_mode`` and are drawn by ``entry_method``.
    """

    splits: SplitTables
    groups: GroupTables
    kinds: int
    kind_of_row: IntArray
    left: IntArray
    right: IntArray
    inner: int
    law: IntArray
    law_count: IntArray
    base_start: IntArray
    base_left: IntArray
    base_right: IntArray
    split_start: IntArray
    group_start: IntArray
    blocks: IntArray
    frequencies: IntArray
    measure_start: IntArray
    measure: Floats
    log_alias: Floats
    is_real: IntArray
    root_chances: Floats
    root_error: float
    entry_row: IntArray
    entry_leaf: IntArray
    entry_size: IntArray
    entry_start: IntArray
    noise: NoiseTable
    sums: SumTables
    width: int


class SplittingRoom(NamedTuple):
    """What a table writes on its way.

    The sums below each node; the group of each node, its base, and whether that is swapped; sums over labels or blocks;
    products of transforms.
    """

    sums: OutIntMatrix
    group: OutInts
    base: OutInts
    swapped: OutInts
    logs: OutFloats
    product: OutFloats
    product_imaginary: OutFloats


SplittingTask: TypeAlias = Annotated[Task, SplittingRoom]
