"""What the last digits of results rest on."""

import platform

import numpy
import scipy
import sklearn


def software_versions() -> dict[str, str]:
    """Return the versions of Python and the libraries below, and the kind of machine.

    Returns
    -------
    dict of str to str
    """
    return {
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }
