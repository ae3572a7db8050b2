"""Model files, as the commands read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

TRUST = "--trust"


def load_model(path: Path, trusted: Sequence[str] | None) -> Any:
    """Load a model file; an error about types names the option instead of Python's argument."""
    # Imported here: --help stays fast, and a missing extra becomes a one-line error.
    from covshift.persistence import ModelFileError, UntrustedTypesError, load
    from covshift.persistence.model_files import explain_untrusted

    try:
        return load(path, trusted=list(trusted or ()))
    except UntrustedTypesError as error:
        told = explain_untrusted(error.types, say_trust(error.types), f"{TRUST} TYPE")
        raise ModelFileError(f"Cannot read the model {path}: {told}") from None


def say_trust(types: Sequence[str]) -> str:
    """Return the options that trust these types."""
    return " ".join(f"{TRUST} {name}" for name in types)
