"""Both ways to compute the losses of filters: a test that asks for them runs in each."""

import pytest

from covshift.kernels import compiled

there = compiled.library() is not None


@pytest.fixture(
    params=[
        "numpy",
        pytest.param(
            "compiled", marks=pytest.mark.skipif(not there, reason="no compiled kernels here")
        ),
    ],
    scope="module",
)
def kernels(request):
    """NumPy alone, or compiled code as far as there is any."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(compiled, "library", lambda: None)
        yield request.param
