"""All estimates of the accuracy of one candidate on the target, those refused included.

Where P(y | x) differs between source domains, what presumes that it is the same in source and
target is refuted: weights always, confidence for a model without adapter, whose scores are a
function of the row.
"""

from covshift.diagnosis.domain_expectation import PlayedLogits, expect_by_domains
from covshift.diagnosis.evidence import play
from covshift.diagnosis.expectation import (
    Expectation,
    estimate_accuracy,
    refuse,
    refuse_contradicted,
)
from covshift.diagnosis.left_out import predict_left_out
from covshift.diagnosis.own_rows import score_own_rows
from covshift.diagnosis.stability import Stability
from covshift.diagnosis.weighting import Weighting
from covshift.selection.bench import Bench


def expect_accuracy(
    bench: Bench, number: int, weighting: Weighting, stability: Stability, *, by_domains: bool
) -> list[Expectation]:
    """Of the candidate of this number.

    ``by_domains``: whether source domains differ from each other as the target does from them.
    """
    left_out = predict_left_out(bench, number)
    found = []
    if left_out is not None:
        found = estimate_accuracy(
            bench.problem,
            left_out.source_logits,
            left_out.target_logits,
            weighting,
            representations=left_out.representations,
        )
    if stability.refuted:
        plain = not bench.candidates[number].adapts
        found = [
            refuse(one.method, [*one.reasons, "rule differs"], one.evidence)
            if one.method == "weights" or plain
            else one
            for one in found
        ]
    if not by_domains:
        return found
    played = [
        PlayedLogits(logits, codes)
        for codes, outputs in play(bench, "source domains")
        if (logits := outputs[number].logits) is not None
    ]
    own = score_own_rows(bench)
    return refuse_contradicted(expect_by_domains(played, bench.target[number].logits, own), found)
