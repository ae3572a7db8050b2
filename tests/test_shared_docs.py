"""Descriptions of shared parameters stand in every docstring, in the order of the signature."""

import inspect

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.shared_docs import documented_like


def first(a, b=1, *, c=2):
    """Do the first thing.

    Parameters
    ----------
    a, b : int, default=1
        Both of them,
        at length.
    c : int, default=2
        The last.

    Returns
    -------
    int

    Notes
    -----
    Of the first alone.
    """


@documented_like(first)
def second(a, extra, b=1, c=3):
    """Do the second thing.

    Parameters
    ----------
    extra : str
        Its own.
    c : int, default=3
        Another default.

    Notes
    -----
    Own notes.
    """


def test_what_is_left_out_is_inserted_in_the_order_of_the_signature():
    assert second.__doc__ == inspect.cleandoc(
        """Do the second thing.

        Parameters
        ----------
        a, b : int, default=1
            Both of them,
            at length.
        extra : str
            Its own.
        c : int, default=3
            Another default.

        Returns
        -------
        int

        Notes
        -----
        Own notes.
        """
    )


def test_a_docstring_without_parameters_gets_them_all():
    @documented_like(first)
    def third(c=2):
        """Do the third thing."""

    assert "Parameters\n----------\nc : int, default=2\n    The last." in third.__doc__
    assert "a, b" not in third.__doc__


def test_without_docstrings_nothing_is_done():
    def fourth(a):
        pass

    assert documented_like(first)(fourth).__doc__ is None


def test_filters_describe_what_they_share_in_the_same_words():
    own, shared = PeriodicSparseFiltering.__doc__, inspect.getdoc(SparseFiltering)
    for entry in ("stopping_window : int, default=50\n", "warm_start : bool, default=False\n"):
        start = shared.index(entry)
        assert shared[start : shared.index("\n", start + len(entry))] in own
