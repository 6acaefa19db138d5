"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import Guide, OutFloats, OutInts, Task
from keepsum.sampling.l1.kernel_arguments import NoiseTable, SumTables

GUIDE = 256  # places of a guide
# The phases of a bundle: its base or label, its factor, its rows, the sum that the others must have; of these, all rows
# but one, and that one, which is solved for; then the cells.
PICK_LABEL, ACCEPT_BUNDLE, DRAW_ROWS, ACCEPT_SUM, DRAW_SOLVED, ACCEPT_ROW, FILL = range(7)
OFFSET = 1 << 40  # answers must not be negative, sums may be


class SplitTables(NamedTuple):
    """Weights of sums, and how a sum y splits between two children, for all bases of all forms and all their laws.

    Weights w are ``weights[weight_start[w] + |y|]`` up to ``weight_reach[w]``, each right up to ``weight_error``; none
    is larger than ``weight_top[w]``, and none beyond the reach larger than ``weight_beyond[w]``. A split s has the
    weights ``left[s]`` and ``right[s]``, and place ``place_start[s] + |y|`` of the other arrays is for y up to
    ``reach[s]``:

    - u, the sum below the left child, has the cumulative chances ``cumulative[cumulative_start + m]`` at every
      ``stride``-th value from ``lowest`` on, ``counts`` of them, each right up to ``slack``; ``guide`` says where to
      start looking, or before that; a weight W_L(u) W_R(y - u) times ``inverse`` is a chance;
    - no such weight is larger than ``peak``, whose chance is about ``peak_chance``;
    - ``log_numbers`` are log t_m(y), from ``number_start`` on; ``transform`` and ``transform_imaginary``, from
      ``transform_start`` on, are the characteristic function of u at the frequencies of the form, right up to
      ``transform_error``; ``log_dropped`` and ``log_growth`` bound the other frequencies and the tails, ``log_largest``
      the transform at frequencies that are not kept.
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
    log_largest: Floats
    log_growth: Floats
    cumulative: Floats
    guide: Guide
    log_numbers: Floats
    transform: Floats
    transform_imaginary: Floats
    stride: int


class GroupTables(NamedTuple):
    """The labels of the groups of all forms.

    Group g has the labels from ``start[g]`` to ``start[g + 1]``, each with its ``base``. Place ``law_start[g] + k`` is
    for its law k: there the logarithms of the labels' weights relative to those of the group, for a sum y up to
    ``reach``, start at ``ratios[ratio_start + |y| * (labels + 1)]``; the last number of each such row is the largest
    error of the others.
    """

    start: IntArray
    base: IntArray
    reach: IntArray
    law_start: IntArray
    ratio_start: IntArray
    ratios: Floats


class SplittingTables(NamedTuple):
    """A table that is drawn bundle by bundle.

    Bundle b has the places from ``start[b]`` to ``start[b + 1]``: their sums stand at ``at``, those of their children
    at ``left`` and ``right``, and ``law`` is the law of each. Its right children are in bundle ``below[b]``, or are
    entries; a rejected bundle begins again at ``restart[b]``. Where ``tagged[b]`` is a bundle, that of all entries, its
    group is the tag of the base: of form f and its base k, ``tags[tag_start[f] + k]``. It has the ``form[b]``.

    Form f has ``law_count[f]`` laws; its splits start at ``split_start[f]``, base by base, its groups at
    ``group_start[f]``, ``NONE`` where all sums are 0. Characteristic functions are summed over ``few[f]`` frequencies
    with the weights from ``measure_start[f]`` on; there are ``blocks[f]`` blocks of numbers t. Of at least
    ``solved_rows`` rows every ``solved_every``-th is in the part that is solved for; the sum over these is over all
    ``frequencies[f]``, multiples of 2 pi over ``points[f]``; the cosines and sines of all multiples of half that are at
    ``turn_start[f]``.
    ``log_alias[f]`` belongs to the bound on what sums over frequencies miss. Where all sums are 0, its ``bases[f]``
    bases have the cumulative chances ``root_chances`` from ``root_start[f]`` on, right up to ``root_error[f]``.

    Entry e has its sum at ``entry_at`` and ``entry_size`` cells from ``entry_start`` on.
    """

    splits: SplitTables
    groups: GroupTables
    start: IntArray
    at: IntArray
    left: IntArray
    right: IntArray
    law: IntArray
    below: IntArray
    tagged: IntArray
    tag_start: IntArray
    tags: IntArray
    restart: IntArray
    form: IntArray
    law_count: IntArray
    split_start: IntArray
    group_start: IntArray
    blocks: IntArray
    few: IntArray
    frequencies: IntArray
    measure_start: IntArray
    measure: Floats
    points: IntArray
    turn_start: IntArray
    cosines: Floats
    sines: Floats
    growth: Floats
    centre: Floats
    log_alias: Floats
    bases: IntArray
    root_start: IntArray
    root_chances: Floats
    root_error: Floats
    entry_at: IntArray
    entry_size: IntArray
    entry_start: IntArray
    noise: NoiseTable
    sums: SumTables
    solved_rows: int
    solved_every: int
    width: int


class SplittingRoom(NamedTuple):
    """What a table writes on its way.

    All sums; the group of each bundle and its base; sums over labels or blocks; products of transforms, which are those
    of the part that is solved for while a bundle is drawn; and of that part the error of its chances, the logarithm of
    tails, and a bound on the chance of any sum.
    """

    sums: OutInts
    group: OutInts
    base: OutInts
    logs: OutFloats
    product: OutFloats
    product_imaginary: OutFloats
    part: OutFloats


SplittingTask: TypeAlias = Annotated[Task, SplittingRoom]
