"""The law of the noise, margins of error, and cells that the kept totals give away."""
