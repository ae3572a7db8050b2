"""Parameters that several functions or classes share, described once and shown at each of them."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])
# Sections of a docstring after its parameters.
AFTER = ("Attributes", "Returns", "Yields", "Raises", "See Also", "Notes", "References", "Examples")
# Sections that are taken over whole.
WHOLE = ("Returns", "Raises", "Notes", "References")


def documented_like(*sources: Any) -> Callable[[Documented], Documented]:
    """Decorate a function or a class: what its docstring leaves out stands in those of ``sources``.

    That are the descriptions of parameters of its signature, and the sections Returns, Raises,
    Notes and References. They are inserted where they belong: `help` and the reference show them.

    Parameters
    ----------
    *sources : functions or classes
        The first that describes a parameter, or has the section, is followed.
    """

    def complete(target: Documented) -> Documented:
        if target.__doc__:  # there are none under python -OO
            target.__doc__ = completed(target, sources)
        return target

    return complete


def completed(target: Any, sources: tuple[Any, ...]) -> str:
    """Return the docstring of a function or class with what it leaves out."""
    sections = read_sections(target.__doc__)
    known = [read_sections(source.__doc__) for source in sources]
    own = read_entries(sections.pop("Parameters", ""))
    shared = [read_entries(one.get("Parameters", "")) for one in known]
    chosen: dict[str, str] = {}  # first line of an entry -> the entry, in the order of parameters
    for name in inspect.signature(target).parameters:
        entry = next((one[name] for one in (own, *shared) if name in one), None)
        if entry is not None:
            chosen[entry.partition("\n")[0]] = entry
    sections["Parameters"] = "\n".join(chosen.values())
    for name in WHOLE:
        found = next((one[name] for one in known if name in one), None)
        if name not in sections and found is not None:
            sections[name] = found
    ordered = ["", "Parameters", *AFTER]
    return "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{sections[name]}" if name else sections[name]
        for name in ordered
        if sections.get(name)
    )


def read_sections(text: str) -> dict[str, str]:
    """Take a docstring apart: its text before all sections by "", and each by its name."""
    titles = "|".join(("Parameters", *AFTER))
    start, *rest = re.split(rf"^({titles})\n-+\n", inspect.cleandoc(text), flags=re.MULTILINE)
    bodies = (part.strip("\n") for part in rest[1::2])
    return {"": start.strip()} | dict(zip(rest[::2], bodies, strict=True))


def read_entries(section: str) -> dict[str, str]:
    """Take a section of parameters apart: the entry that describes each of them."""
    entries = re.split(r"^(?=\S)", section, flags=re.MULTILINE)
    return {
        name.strip(" *"): entry.rstrip()
        for entry in entries
        for name in entry.partition("\n")[0].partition(" : ")[0].split(",")
        if entry.strip()
    }
