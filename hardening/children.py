"""Work in child processes with limits: crashes and hangs of the child are results."""

import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

MEMORY = 6 << 30


def run_in_child(work: Callable[[], int], log: Path, limit: float) -> int | None:
    """Return the exit status of some work in a child of its own; None: it ran into the limit.

    The limit is in seconds of processor time, which other work on the machine does not change; a
    child that waits is ended after ten times that long. A negative status is a signal.
    """
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            cpu = math.ceil(time.process_time() + limit)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            with open(log, "w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = work()
        except BaseException as error:
            print(repr(error), flush=True)
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = time.monotonic() + 10 * limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            # Both are sent by the system at the limit of processor time.
            return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def use_one_thread() -> None:
    """Keep libraries that are imported later from starting threads, which a fork does not copy."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
