"""Lengths of transforms, against scipy's."""

from scipy.fft import next_fast_len

from keepsum.sampling.l1.splitting.splits import quick_length


def test_quick_lengths_are_those_of_scipy():
    for least in (*range(1, 3000), 10**5 + 1, 10**6 + 7, 2**20, 3**13 + 1):
        assert quick_length(least) == next_fast_len(least, real=True)
