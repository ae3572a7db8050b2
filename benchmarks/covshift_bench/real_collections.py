"""Real collections as rows, labels and domains, in every way that they are cut into domains.

The data are where a user keeps them: a folder with ``real_domains`` (``.npz`` files),
``vowels_h95``, ``office_caltech10_surf``, ``amazon_reviews``, ``emodb`` and ``ravdess``; or a
folder of ``.npz`` files of the same format.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from covshift.datasets import (
    load_amazon_reviews,
    load_office_caltech,
    load_speech_corpus,
    load_vowels,
)

EMODB_MEN = ("03", "10", "11", "12", "15")
BOTH_KINDS = ("pair", "left out")
# Columns by which a pupil is found in the other course, as the publisher of `student_performance`
# suggests.
PUPIL = ("sex", "age", "address", "famsize", "Pstatus", "Medu", "Fedu", "Mjob", "Fjob", "reason",
         "nursery", "internet")  # fmt: skip


class Cut(NamedTuple):
    """Rows of a collection, cut into domains in one way.

    ``units`` holds arrays of identifiers, from coarse to fine (speaker, then recording): rows of
    one unit belong together. ``kinds`` are the kinds of tasks that this cut is used for.
    """

    X: np.ndarray  # NaN where a value is missing
    y: np.ndarray  # class numbers
    domain: np.ndarray  # 0, 1, ...
    domain_names: list
    ordered: bool = False  # earlier domains are the sources of later ones
    units: tuple = ()
    kinds: tuple = BOTH_KINDS

    def take(self, rows):
        """Return the cut with some of the rows."""
        units = tuple(unit[rows] for unit in self.units)
        rows = (self.X[rows], self.y[rows], self.domain[rows])
        return Cut(*rows, self.domain_names, self.ordered, units, self.kinds)


def collection_names(data):
    """Names of all collections of the data folder."""
    files = _folder(data).glob("*.npz")
    loaded = [name for name, (folder, _) in LOADED.items() if (Path(data) / folder).is_dir()]
    return sorted([*(path.stem for path in files), *loaded])


def _folder(data):
    folder = Path(data) / "real_domains"
    return folder if folder.is_dir() else Path(data)


@cache
def read_cuts(data, collection):
    """Return the cuts of a collection by name; the main one has the name "".

    Each collection is read once in a process. All of them take about 150 MB.
    """
    if collection in LOADED:
        folder, read = LOADED[collection]
        return read(Path(data) / folder)
    with np.load(_folder(data) / f"{collection}.npz") as file:
        arrays = {name: file[name] for name in file.files}
    texts = {name: json.loads(str(array)) for name, array in arrays.items() if "_names" in name}
    units = tuple(arrays[name] for name in ("group", "clip") if name in arrays)
    X = arrays["X"] if "scale" not in arrays else np.float32(arrays["X"] * arrays["scale"])
    main = Cut(
        X,
        arrays["y"].astype(int),
        arrays["domain"].astype(int),
        texts["domain_names"],
        bool(json.loads(str(arrays["ordered"]))),
        units,
    )
    return MORE_CUTS.get(collection, _only)(main, arrays, texts)


def _only(main, arrays, texts):
    return {"": main}


def _with_pupils(main, arrays, texts):
    """Most pupils of one course are also in the other: rows of one pupil are a unit."""
    columns = [name.partition("=")[0] in PUPIL for name in texts["feature_names"]]
    school = [main.domain_names[number].partition(",")[0] for number in main.domain]
    answers = np.column_stack([np.unique(school, return_inverse=True)[1], main.X[:, columns]])
    pupil = np.unique(answers, axis=0, return_inverse=True)[1].ravel()
    return {"": main._replace(units=(pupil,))}


def _adult_by_sex(main, arrays, texts):
    others = [name != "sex=Male" for name in texts["feature_names"]]
    sex = arrays["domain_sex"].astype(int)
    by_sex = main._replace(X=main.X[:, others], domain=sex, domain_names=texts["domain_sex_names"])
    return {"": main, "sex": by_sex}


def _speakers_by_sex(main, arrays, texts):
    by_sex = main._replace(
        domain=arrays["domain_sex"].astype(int),
        domain_names=texts["domain_sex_names"],
        units=(main.domain,),
    )
    return {"": main, "sex": by_sex}


def _bearing_cuts(main, arrays, texts):
    """Sensor and load; loads within one sensor; sizes of the fault, to tell its place.

    Pairs of loads within a sensor, and of sensors within a load, are among those of the main cut.
    """
    cuts = {"": main}
    for number, sensor in enumerate(texts["domain_sensor_names"]):
        rows = arrays["domain_sensor"] == number
        load = arrays["domain_load"].astype(int)
        by_load = main._replace(domain=load, domain_names=texts["domain_load_names"])
        cuts[f"load, {sensor}"] = by_load._replace(kinds=("left out",)).take(rows)
        by_size = main._replace(
            y=arrays["y_fault"].astype(int),
            domain=arrays["domain_size"].astype(int),
            domain_names=texts["domain_size_names"],
        )
        cuts[f"size, {sensor}"] = by_size.take(rows)
    return cuts


def _read_vowels(folder):
    vowels = load_vowels(folder)
    return {"": _cut_of(vowels, vowels.target, units=(_numbers(vowels.speaker),))}


def _read_office(folder):
    office = load_office_caltech(folder)
    return {"": _cut_of(office, office.target)}


def _read_reviews(folder):
    reviews = load_amazon_reviews(folder, features="log400")
    return {"": _cut_of(reviews, reviews.target)}


def _read_emodb(folder):
    return _speech_cuts(load_speech_corpus(folder, "emodb"), lambda name: name in EMODB_MEN)


def _read_ravdess(folder):
    # Actors with odd numbers are men.
    return _speech_cuts(load_speech_corpus(folder, "ravdess"), lambda name: int(name) % 2 == 1)


def _speech_cuts(speech, is_man):
    """Valence and emotion, by speaker and by sex; rows are seconds of recordings."""
    recording = _numbers(speech.recording)
    woman = np.array([not is_man(speech.domain_names[number]) for number in speech.domain])
    cuts = {}
    for label, y in (("valence", speech.target), ("emotion", speech.emotion)):
        by_speaker = _cut_of(speech, y, units=(speech.domain, recording))
        cuts[label] = by_speaker
        cuts[f"{label}, sex"] = by_speaker._replace(
            domain=woman.astype(int), domain_names=["men", "women"]
        )
    return cuts


def _cut_of(bunch, y, units=()):
    names = [bunch.domain_names[number] for number in sorted(bunch.domain_names)]
    return Cut(np.asarray(bunch.data), _numbers(y), bunch.domain, names, units=units)


def _numbers(values):
    return np.unique(values, return_inverse=True)[1].ravel()


# Folder, and function that reads it.
LOADED = {
    "amazon_reviews": ("amazon_reviews", _read_reviews),
    "emodb": ("emodb", _read_emodb),
    "office_caltech10": ("office_caltech10_surf", _read_office),
    "ravdess": ("ravdess", _read_ravdess),
    "vowels_h95": ("vowels_h95", _read_vowels),
}
MORE_CUTS = {
    "adult": _adult_by_sex,
    "cwru_raw": _bearing_cuts,
    "cwru_spectra": _bearing_cuts,
    "student_performance": _with_pupils,
    "vowels_deterding": _speakers_by_sex,
}
