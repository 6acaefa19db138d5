"""Speed and memory against peers in the same run (`make bench`); `make convergence` measures the chains."""
