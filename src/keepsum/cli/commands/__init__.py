"""One module per command of the shell, each with a function ``add(app)``; every module here is a command."""
