"""Builds the compiled kernels into the wheel if the environment variable COVSHIFT_COMPILE is set.

Without it, or without a C compiler, the wheel is pure Python: NumPy does the same, more slowly.
`docs/design/0034-compiled-kernels.md` gives the reasons.

`python hatch_build.py` builds them into the source tree.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "src" / "covshift" / "kernels" / "compiled"
LIBRARY = "_filters.so"
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
]
# One version for each generation of processors, as wide as theirs; older compilers have no such.
WIDE = ["-mprefer-vector-width=512", "-DSEVERAL_PROCESSORS"]


def compile_kernels(target: Path) -> None:
    """Compile the sources into a library at ``target``."""
    compiler = shlex.split(os.environ.get("CC", "")) or [find_compiler()]
    digest = hashlib.sha256()
    for source in sorted(FOLDER.glob("*.[ch]")):  # as the loader does
        digest.update(source.read_bytes())
    built_from = f'-DBUILT_FROM="{digest.hexdigest()}"'
    sources = [str(source) for source in sorted(FOLDER.glob("*.c"))]
    on_linux = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")
    message = ""
    for wide in ([WIDE] if on_linux else []) + [[]]:
        command = [*compiler, *FLAGS, *wide, built_from, *sources, "-o", str(target), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode == 0:
            return
        message = result.stderr
    raise OSError(f"{compiler[0]} cannot compile the kernels:\n{message}")


def find_compiler() -> str:
    """The first of the usual names that is there."""
    for name in ("cc", "gcc", "clang"):
        if (path := shutil.which(name)) is not None:
            return path
    raise OSError("there is no C compiler (cc, gcc, clang)")


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a script
    BuildHookInterface = object


class CustomBuildHook(BuildHookInterface):
    """What hatchling calls before it makes a wheel."""

    def initialize(self, version, build_data):
        """Add the library, if it can be built; an editable install keeps it beside its sources."""
        if not os.environ.get("COVSHIFT_COMPILE"):
            return
        if version == "editable":
            target = FOLDER / LIBRARY
        else:
            self.room = tempfile.TemporaryDirectory()
            target = Path(self.room.name) / LIBRARY
        try:
            compile_kernels(target)
        except OSError as error:
            self.app.display_warning(f"covshift: without compiled kernels, since {error}")
            return
        build_data["pure_python"] = False
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{system}"
        if version != "editable":
            build_data["force_include"][str(target)] = f"covshift/kernels/compiled/{LIBRARY}"

    def finalize(self, version, build_data, artifact_path):
        """Remove what the library was built in."""
        if hasattr(self, "room"):
            self.room.cleanup()


if __name__ == "__main__":
    compile_kernels(FOLDER / LIBRARY)
