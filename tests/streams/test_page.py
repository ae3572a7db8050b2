"""The page on tables larger than memory: what it shows runs."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "larger-than-memory.md"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # what Dask calls of pandas
def test_the_page_runs(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("dask.dataframe")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("covshift.streams.rows.SMALL_BYTES", 0)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 3))
    y, sample_domain = (rows[:, 0] > 0).astype(int), np.repeat([0, 1, -1], 200)
    np.save("rows.npy", rows)
    Path("rows").mkdir()
    frame = pd.DataFrame(rows, columns=["x0", "x1", "x2"]).assign(label=y, domain=sample_domain)
    for part in range(3):
        frame.iloc[part::3].to_parquet(f"rows/part.{part}.parquet", index=False)
    on_disk, with_dask, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names = {"y": y, "sample_domain": sample_domain}
    exec(on_disk, names)
    first = names["psf"].components_
    exec(with_dask, names)
    assert names["Z"].shape == (600, 8)
    assert Path("predictions").is_dir()
    assert first.shape == names["psf"].components_.shape
