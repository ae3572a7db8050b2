"""Ids of any text -> names fit for HTML anchors and for files."""

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 60  # leaves room for a prefix and a number in names of files


def unique_slugs(ids: Iterable[str]) -> dict[str, str]:
    """Map each id to a name of ASCII letters, digits, ``.``, ``_`` and ``-``, no two alike.

    Capitals do not tell names apart, as on some file systems.

    Parameters
    ----------
    ids : iterable of str
        Unique, any text.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> unique_slugs(["accuracy", "radial, SF", "radial: sf", "<b>", "猫"])
    {'accuracy': 'accuracy', 'radial, SF': 'radial-SF', 'radial: sf': 'radial-sf-2', '<b>': 'b', '猫': 'item'}
    """  # noqa: E501
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for one in ids:
        plain = unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode()
        base = re.sub(r"[^A-Za-z0-9._]+", "-", plain)[:LONGEST].strip("-.") or "item"
        slug, number = base, 1
        while slug.lower() in taken:
            number += 1
            slug = f"{base}-{number}"
        taken.add(slug.lower())
        slugs[one] = slug
    return slugs
