"""The paper, reproduced: its three experiments, its claims, and what this library adds. Run by `make paper`."""
