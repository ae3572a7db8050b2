"""Sparse filtering on machine signals: the bearings of Case Western Reserve."""
