import io

import pytest
from rich.console import Console

from covshift.cli import progress as module
from covshift.cli.progress import trial_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(file, *reports, **options):
    console = Console(file=file, width=100, **options)
    with trial_progress(console) as report:
        for numbers in reports:
            report(*numbers)
    return file.getvalue()


@pytest.mark.parametrize("options", [{}, {"force_terminal": True}])
def test_a_pipe_gets_nothing(options):
    assert shown(io.StringIO(), (0, 4, 0), (4, 4, 1), **options) == ""


def test_a_terminal_gets_a_bar_with_failures(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), (1, 4, 0), (4, 4, 2))
    assert "4/4" in text
    assert "2 failed" in text
    assert "left:" in text


def test_nothing_to_do_and_nothing_reported(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert "0/0" in shown(Terminal(), (0, 0, 0))
    shown(Terminal())


def test_earlier_work_says_nothing_of_the_speed(monkeypatch):
    """100 trials done before and 1 in 10 s: 9 more take 90 s."""
    monkeypatch.setenv("TERM", "xterm")
    time = 0.0
    bars = []

    class Bar(module.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, get_time=lambda: time, auto_refresh=False, **options)
            bars.append(self)

    monkeypatch.setattr(module, "Progress", Bar)
    with trial_progress(Console(file=Terminal())) as report:
        report(100, 111, 0)
        for done in (101, 102):
            time += 10.0
            report(done, 111, 0)
        assert bars[0].tasks[0].time_remaining == pytest.approx(90.0)
