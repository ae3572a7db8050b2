"""The table of MMD changes, on a few draws."""

import pytest

from covshift.experiments import paper_mmd
from covshift.experiments.paper import PRINTED_MMD

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_filters_bring_source_and_test_rows_together():
    changes = list(paper_mmd.run_changes(n_trials=3))
    assert len(changes) == 3 * 4 * 4
    cells = {}
    for change in changes:
        cells.setdefault((change.data_set, change.system), []).append(change.change)
    for (data_set, system), values in cells.items():
        mean = sum(values) / len(values)
        printed, _ = PRINTED_MMD[data_set, system.partition(",")[0]]
        assert mean < -20
        assert abs(mean - printed) < 50, (data_set, system)


def test_as_drawn_filters_match_the_printed_cells_of_sparse_filtering():
    values = [
        change.change
        for change in paper_mmd.run_changes(n_trials=2)
        if (change.data_set, change.system) == ("radial", "SF, as drawn")
    ]
    assert sum(values) / 2 == pytest.approx(-100.1, abs=0.5)


def test_table_shows_all_three_columns(capsys):
    paper_mmd.main(n_trials=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 16
    assert lines[0].split()[-3:] == ["ours", "printed", "rebuilt"]
    assert lines[-1].endswith("-84.6 ±  4.6    -79.6")
