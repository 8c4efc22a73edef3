"""Runs the code of its argument; an error of it fails this program."""

import sys

exec(compile(sys.argv[1], "guide", "exec"), {"__name__": "guide"})
print('"ran"')
