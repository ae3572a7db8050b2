"""The methods: each module here has a list ``METHODS``; so has a file of your own.

To submit a method, copy ``template.py`` of this folder: the page "How to submit a method" of the
README says how it is run.
"""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

TEMPLATE = "template"  # a method that need not be run


def all_methods(folders=()):
    """Return every method by name.

    Parameters
    ----------
    folders : iterable of path
        Folders with more modules that have a list ``METHODS``.

    Returns
    -------
    dict
        Methods by name; those of this package first.
    """
    names = [one.name for one in iter_modules(__path__) if one.name != TEMPLATE]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    for folder in folders:
        if str(folder) not in sys.path:  # workers get the same path
            sys.path.append(str(folder))
        modules += [_import_file(path) for path in sorted(Path(folder).glob("*.py"))]
    found = {}
    for module in modules:
        for method in module.METHODS:
            if method.name in found:
                raise ValueError(f"two methods are named {method.name!r}")
            found[method.name] = method
    return found


def _import_file(path):
    """Import a file of a folder on the path, by its name, as workers will."""
    module = import_module(path.stem)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise ValueError(f"{path}: another module is named {path.stem!r}. Rename the file.")
    if not hasattr(module, "METHODS"):
        raise ValueError(f"{path} has no list METHODS.")
    return module
