"""The paper's speech study as a study to be run."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from covshift.experiments.speech.document import psf_verdict, speech_document, terminal_rows
from covshift.experiments.speech.feature_tables import digest_of
from covshift.experiments.speech.plans import Plan, declare
from covshift.experiments.speech.protocol import SpeechTable, check_corpora
from covshift.experiments.speech.summary import gather
from covshift.experiments.speech.trials import run_speech_trials
from covshift.experiments.store import Record
from covshift.experiments.study import Facts, Study, TextTable


def speech_study(
    tables: Mapping[str, SpeechTable], plan: Plan, leave_out: str, seed: int, folder: Path
) -> Study:
    """The study of a plan; ``folder`` is where `save_tables` puts the features."""
    check_corpora(tables, leave_out, seed)
    digest = digest_of(tables)

    def document(records: Sequence[Record], facts: Facts) -> Any:
        return speech_document(gather(records), tables, plan, facts)

    return Study(
        name="speech",
        tasks=declare(tables, plan, leave_out, seed, digest),
        function=partial(run_speech_trials, str(folder)),
        run_settings={
            "plan": plan.name,
            "seed": seed,
            "leave_out": leave_out,
            "corpora": list(tables),
            "data": digest,
        },
        document=document,
        table=terminal_table,
    )


def terminal_table(records: Sequence[Record]) -> TextTable:
    """UAR of every system with the printed settings, its difference and p-values."""
    results = gather(records)
    return TextTable(
        ["corpus", "system", "UAR", "difference", "Wilcoxon p", "clustered p"],
        [terminal_rows(results, corpus) for corpus in results.corpora],
        "UAR with the printed settings over all trials; difference to the baseline.\n"
        + "\n".join(psf_verdict(results, corpus) for corpus in results.corpora),
    )
