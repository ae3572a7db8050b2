"""Programs that need a process of their own, without the imports of each."""

import json
import os
import subprocess
import sys

# Each program runs in a copy of the process as it is after the setup.
SERVER = """
import json, os, sys, traceback
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            exec(json.loads(line))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class ForkedPrograms:
    """Run programs after a common setup, each in a process of its own.

    Where the system can, a process runs the setup once and copies itself for each program;
    elsewhere every program runs the setup first.

    Parameters
    ----------
    setup : str
        Program with which the others begin.
    options : sequence of str
        Options of Python.
    """

    def __init__(self, setup, options=()):
        self.setup, self.command = setup, [sys.executable, *options, "-c"]
        self.process = None

    def run(self, program):
        """Run a program; raise an error if it fails, whose traceback is on standard error."""
        if not hasattr(os, "fork"):
            subprocess.run([*self.command, self.setup + program], check=True)
            return
        if self.process is None:
            self.process = subprocess.Popen(
                [*self.command, self.setup + SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline().strip()
        assert status == "0", f"the program ended with status {status or 'none: setup failed'}"

    def close(self):
        if self.process is not None:
            self.process.communicate()
