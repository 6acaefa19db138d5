"""One module for each command of the shell; it is found by being here and having a function ``add(app)``."""
