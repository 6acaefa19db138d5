"""Meeting times of coupled chains, and the bounds on total variation that they give."""
