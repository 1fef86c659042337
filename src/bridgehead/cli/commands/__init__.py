"""One module a command; each has a function `command`, which `bridgehead.cli.lazy` turns into a parser."""
