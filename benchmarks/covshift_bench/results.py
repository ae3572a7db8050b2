"""Results of methods on tasks: a file of JSON lines that is only appended to.

Each line is one result. A run that is killed loses at most the line it was writing, which the next
run removes. `read_results` returns the last line of each task and method.
"""

import base64
import fcntl
import json
import os
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of class numbers, one for each row
OK, FAILED, TIMEOUT, DIED = "ok", "failed", "timeout", "died"
KEY = ("task", "rows", "size", "method", "version", "seed")


def key_of(line):
    """Return what identifies a result: a changed task or method has another key."""
    return tuple(line[name] for name in KEY)


def encode_codes(codes):
    """Return class numbers as text."""
    return "".join(DIGITS[code] for code in codes)


def decode_codes(text):
    """Return the class numbers of a text."""
    return np.array([DIGITS.index(digit) for digit in text], dtype=int)


def encode_probabilities(P):
    """Return probabilities (n, n_classes) as text, in half precision."""
    return base64.b64encode(zlib.compress(np.asarray(P, dtype="<f2").tobytes())).decode()


def decode_probabilities(text, n_rows):
    """Return the probabilities of a text."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f2")
    return values.reshape(n_rows, -1).astype(np.float64)


@contextmanager
def open_results(path):
    """Open a file to append to, locked against other runs; yields a function that adds a line."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            reason = f"{path} is in use by another run. Wait for it, or use another file."
            raise OSError(reason) from error
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)

        def add(line):
            file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

        yield add


def read_lines(path):
    """Return all whole lines of a file; none if it is missing."""
    path = Path(path)
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def read_results(paths, size="standard", every_seed=False):
    """Return the last line of each task and method in the files, in the order of the lines.

    A method that was run with several seeds has one result a task: the last. With ``every_seed`` it
    has one for each seed. Results of another version than the method's last line are left out.
    """
    last, versions = {}, {}
    for path in paths:
        for line in read_lines(path):
            if line["size"] == size:
                key = line["task"], line["method"], line["seed"] if every_seed else None
                last.pop(key, None)  # a result that was run again moves, with those made with it
                last[key] = line
                versions[line["method"]] = line["version"]
    return [line for line in last.values() if line["version"] == versions[line["method"]]]
