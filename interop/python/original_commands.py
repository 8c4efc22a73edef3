"""Runs commands of the original's `aenv`, each in a fork of this process: importing it takes seconds.

Reads lines of JSON, each with the arguments of a command. Prints a line of JSON for each: its exit code and its output.
"""

import json
import os
import sys
import tempfile
import traceback

from cli.cli import cli


def run(arguments):
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if child == 0:
            become(arguments, stdout.fileno(), stderr.fileno())
        _, status = os.waitpid(child, 0)
        for file in (stdout, stderr):
            file.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return {"code": code, "stdout": stdout.read().decode(), "stderr": stderr.read().decode()}


def become(arguments, stdout, stderr):
    """As the installed program does: the result of `cli` is the exit code. Does not return."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    sys.argv = ["aenv", *arguments]
    code = 1
    try:
        code = cli() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
