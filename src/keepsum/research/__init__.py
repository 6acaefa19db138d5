"""The paper's own chain, and what others do instead."""
