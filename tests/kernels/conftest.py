"""Both ways to compute the losses of filters: a test that asks for them runs in each."""

import pytest

from covshift.kernels import compiled

with pytest.MonkeyPatch.context() as patch:  # the suite runs NumPy's
    patch.setenv("COVSHIFT_KERNELS", "auto")
    COMPILED = compiled.library.__wrapped__()


@pytest.fixture(
    params=[
        "numpy",
        pytest.param(
            "compiled",
            marks=pytest.mark.skipif(COMPILED is None, reason="no compiled kernels here"),
        ),
    ],
    scope="module",
)
def kernels(request):
    """NumPy alone, or compiled code as far as there is any."""
    with pytest.MonkeyPatch.context() as patch:
        found = COMPILED if request.param == "compiled" else None
        patch.setattr(compiled, "library", lambda: found)
        yield request.param
