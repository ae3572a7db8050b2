"""What ``benchopt test`` leaves out."""

import os

import pytest


def check_test_dataset_get_data(benchmark, dataset):
    """Leave the collections out where no data are named: the test ignores their ``skip``."""
    if dataset.name == "Collections" and not os.environ.get("COVSHIFT_DATA"):
        pytest.skip("Set COVSHIFT_DATA to the folder with the collections.")
