"""Small folders in each layout that the loaders read, made at random."""

import csv

import numpy as np
from scipy import sparse
from scipy.io import savemat

DOMAINS = ("books", "dvd", "electronics", "kitchen")
WORDS = ("awful", "battery", "great", "plot", "the", "the plot")


def make_vowels(folder, n_speakers=3, seed=0):
    """Speakers of four kinds, whose formants move with the kind; three vowels each."""
    rng = np.random.RandomState(seed)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "h95.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["type", "speaker", "vowel", "dur", "f0", "f1", "f2", "f3"])
        for number, kind in enumerate("bgmw"):
            for speaker in range(n_speakers):
                for place, vowel in enumerate(("i", "3'", "{")):
                    numbers = 100 * (place + 1) + 50 * number + rng.randint(40, size=5)
                    name = f"{n_speakers * number + speaker + 1}.0"
                    writer.writerow([kind, name, vowel, *numbers])
    return folder


def make_office(folder, n_rows=30, n_features=12, seed=0):
    """Histograms with one more visual word per class, of four domains."""
    rng = np.random.RandomState(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("amazon", "Caltech10", "dslr", "webcam"):
        labels = np.resize(np.arange(1, 11), n_rows)
        counts = rng.randint(1, 60, size=(n_rows, n_features))
        counts[np.arange(n_rows), labels % n_features] += 150
        arrays = {"fts": counts.astype(np.uint8), "labels": labels[:, None].astype(np.uint8)}
        savemat(folder / f"{name}_SURF_L10.mat", arrays)
    return folder


def make_review_arrays(folder, n_rows=10, n_words=None, seed=0):
    """Counts in which one word tells the sentiment; ``n_rows`` of each class and domain."""
    rng = np.random.RandomState(seed)
    folder.mkdir(parents=True, exist_ok=True)
    words = list(WORDS) + [f"word{i:03d}" for i in range((n_words or len(WORDS)) - len(WORDS))]
    domain = np.repeat(DOMAINS, 2 * n_rows)
    y = np.tile(np.repeat([0, 1], n_rows), len(DOMAINS)).astype(np.int8)
    counts = rng.poisson(0.7, size=(len(y), len(words)))
    counts[:, 0] += 2 * (y == 0)
    counts[:, 2] += 2 * (y == 1)
    counts[:, 4] += 3 + rng.randint(3, size=len(y))
    counts = sparse.csr_matrix(counts.astype(np.float32))
    sparse.save_npz(folder / "amazon_counts5000.npz", counts)
    np.savez(folder / "amazon_meta.npz", y=y, domain=domain, vocab=np.array(words))
    return folder


def make_review_texts(folder, names=("books", "kitchen_&_housewares")):
    """Blitzer's archive of texts, with a character that is not UTF-8."""
    for name in names:
        (folder / name).mkdir(parents=True)
        for label, text in (("positive", "Don't miss it: GREAT plot\xe9"), ("negative", "Awful.")):
            review = f"<review>\n<rating>\n5.0\n</rating>\n<review_text>\n{text}\n</review_text>\n"
            path = folder / name / f"{label}.review"
            path.write_text((review + "</review>\n") * 2, encoding="latin-1")
    return folder


def make_processed_reviews(folder, names=("books", "dvd")):
    """Blitzer's archive `processed_acl`."""
    for name in names:
        (folder / name).mkdir(parents=True)
        for label, line in (("positive", "great:2 great_plot:1"), ("negative", "awful:1 10:00:1")):
            text = f"{line} #label#:{label}\n" * 3
            (folder / name / f"{label}.review").write_text(text)
    return folder
