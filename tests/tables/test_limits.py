"""Cost of tables: memory, packages, and what a saved encoder asks to be trusted."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from covshift.tables import TableEncoder, TableError, TableSchema, open_table, read_table
from tests.tables.test_encoder import mixed_frame

PEAK = """
import sys
from covshift.tables import TableSchema, open_table

def megabytes(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024

schema = TableSchema({"x": "number", "city": "text"})
n_rows = sum(map(len, open_table(sys.argv[1], schema=schema)))
n_rows_again = sum(map(len, open_table(sys.argv[1])))
assert n_rows == n_rows_again
print(n_rows, megabytes("VmHWM"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path, compressed):
    peaks = []
    row = b"1.25,some city with a long name\n"
    # 160 and 640 MB. Below about 100 MB the allocator has not yet kept all that it will keep.
    for n_rows in (5_000_000, 20_000_000):
        path = tmp_path / "large.csv"
        with gzip.open(path, "wb", compresslevel=1) if compressed else path.open("wb") as file:
            file.write(b"x,city\n")
            for _ in range(n_rows // 100_000):
                file.write(row * 100_000)
        shown = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(shown[0]) == n_rows
        peaks.append(float(shown[1]))
    assert peaks[1] < peaks[0] + 100
    assert peaks[1] < 1000


def test_a_bomb_of_one_endless_row_is_refused(tmp_path):
    path = tmp_path / "bomb.csv"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n1,")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    with pytest.raises(TableError, match="a row is longer than 4 MiB"):
        read_table(path)
    with pytest.raises(TableError, match="a row is longer than 4 MiB"):
        list(open_table(path, schema=TableSchema({"a": "number"})))


@pytest.mark.parametrize("name", ["pandas", "pyarrow"])
def test_a_missing_extra_is_named(monkeypatch, name):
    for module in [module for module in sys.modules if module.startswith("covshift.tables")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "covshift\[cli\]"'):
        import covshift.tables  # noqa: F401


def test_a_saved_encoder_needs_no_other_type(tmp_path):
    """Plain attributes: only the class itself has to be trusted."""
    skops = pytest.importorskip("skops.io")
    train, new = mixed_frame(0), mixed_frame(1)
    encoder = TableEncoder().fit(train)
    content = skops.dumps(encoder)
    trusted = skops.get_untrusted_types(data=content)
    assert trusted == ["covshift.tables.encoder.TableEncoder"]
    loaded = skops.loads(content, trusted=trusted)
    np.testing.assert_array_equal(loaded.transform(new), encoder.transform(new))
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
