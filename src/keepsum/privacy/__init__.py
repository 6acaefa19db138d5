"""What is protected, how well: mechanisms, distances, losses and guarantees."""

from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Request

# The mechanisms by the names that certificates know them under.
REQUESTS: dict[str, type[Request]] = {"gaussian": Gaussian, "laplace": Laplace}

__all__ = ["REQUESTS", "Gaussian", "Laplace"]
