"""Numbers that several commands take, checked before any work."""

from collections.abc import Sequence
from pathlib import Path

from covshift.cli.errors import fail

LARGEST_SEED = 2**32 - 1  # that NumPy's RandomState takes


def check_jobs(command: str, jobs: int) -> None:
    """Refuse numbers of processes that cannot be."""
    if jobs == 0 or jobs < -1:
        fail(command, f"--jobs must be at least 1, or -1 for all processors, got {jobs}.")


def check_seed(command: str, seed: int) -> None:
    """Refuse seeds that cannot be."""
    if not 0 <= seed <= LARGEST_SEED:
        fail(command, f"--seed must be from 0 to {LARGEST_SEED}, got {seed}.")


def parse_paths(command: str, option: str, form: str, texts: Sequence[str]) -> dict[str, Path]:
    """Take NAME=PATH apart; each name once. ``form`` is what an error says the option takes."""
    paths: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            fail(command, f"--{option} takes {form}, got {text!r}.")
        if name in paths:
            fail(command, f"--{option} names {name!r} twice: give one path for each name.")
        paths[name] = Path(path)
    return paths
