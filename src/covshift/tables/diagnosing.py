"""Two tables -> a `Diagnosis`, and the rows of the new table that it asks to be labelled."""

from typing import Any

import numpy as np

from covshift.diagnosis import Diagnosis, diagnose
from covshift.domains import placeholder_label
from covshift.tables.encoder import TableEncoder
from covshift.tables.matching import MatchedTables


def diagnose_tables(tables: MatchedTables, **options: Any) -> Diagnosis:
    """Diagnose a training table and a new one.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`.
    **options
        ``max_rows``, ``time_budget``, ``n_jobs``, ``random_state``, ``verbose`` of `diagnose`.

    Returns
    -------
    Diagnosis
        Its features are the encoded columns; rows of the new table come after the training rows.
    """
    import pandas as pd

    X = pd.concat([tables.X_train, tables.X_new], ignore_index=True)
    domain = np.concatenate([tables.source_domain, tables.target_domain])
    encoder = TableEncoder().fit(X, sample_domain=domain)
    features = pd.DataFrame(encoder.transform(X), columns=encoder.get_feature_names_out())
    unknown = np.full(len(tables.X_new), placeholder_label(tables.y), dtype=tables.y.dtype)
    y = np.concatenate([tables.y, unknown])
    return diagnose(
        features, y, sample_domain=domain, domain_names=dict(tables.domain_names), **options
    )


def rows_to_label(diagnosis: Diagnosis, tables: MatchedTables, n_rows: int) -> list[int]:
    """Rows of the new table to label, the first row being 1, the most telling first."""
    return [int(row) - len(tables.X_train) + 1 for row in diagnosis.rows_to_label(n_rows)]
