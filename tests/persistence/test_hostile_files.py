"""Files that are damaged or made to harm: refused in one line, and nothing has run."""

import hashlib
import io
import json
import os
import stat
import struct
import sys
import time
import zipfile
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from covshift import AdaptedClassifier, DomainStandardScaler, SparseFiltering, load, save
from covshift.persistence import ModelFileError, read_card
from covshift.persistence.archive import MAX_CARD_BYTES
from covshift.persistence.card_and_seal import digest_of
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
WHERE = {"sample_domain": SAMPLE_DOMAIN}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Duplicate name"),
]


@pytest.fixture
def path(tmp_path):
    """A good file, for tests to spoil."""
    path = tmp_path / "model.skops"
    save(AdaptedClassifier(DomainStandardScaler()).fit(X, Y, **WHERE), path)
    return path


def read_members(path):
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=ZIP_DEFLATED):
    """Write a file as a forger would, with a digest of what it holds."""
    members = sealed(members)
    with ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def sealed(members):
    """Members with a card that has their digest, if there is a card."""
    try:
        document = json.loads(members["covshift.json"])
        document["digest"] = digest_of(
            document,
            {
                name: hashlib.sha256(one.encode() if isinstance(one, str) else one).hexdigest()
                for name, one in members.items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return members
    return {**members, "covshift.json": json.dumps(document)}


def edit_schema(path, edit):
    members = read_members(path)
    schema = json.loads(members["schema.json"])
    edit(schema)
    write_members(path, {**members, "schema.json": json.dumps(schema)})


def edit_document(path, **entries):
    members = read_members(path)
    document = {**json.loads(members["covshift.json"]), **entries}
    write_members(path, {**members, "covshift.json": json.dumps(document)})


def attributes(schema):
    return schema["content"]["content"]


def refuse(path, *matches, **options):
    """The file is refused by one line that names it, fast, and nothing else has changed."""
    before, modules = sorted(os.listdir(path.parent)), set(sys.modules)
    start = time.perf_counter()
    with pytest.raises(ModelFileError) as refused:
        load(path, **options)
    assert time.perf_counter() - start < 5
    message = str(refused.value)
    assert "\n" not in message
    assert str(path) in message
    for match in matches:
        assert match in message
    assert sorted(os.listdir(path.parent)) == before
    assert not {name for name in set(sys.modules) - modules if "hostile" in name}
    return message


def node(loader, module, name, number=987654321, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, "__id__": number, **more}


def json_node(value, number):
    return node("JsonNode", "builtins", "str", number, content=json.dumps(value), is_json=True)


# Damage.


def test_empty_directory_missing_and_other_files(path, tmp_path):
    refuse(tmp_path, "is a folder")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.skops")
    with pytest.raises(FileNotFoundError):
        read_card(tmp_path / "missing.skops")
    path.write_bytes(b"")
    refuse(path, "not a model file; covshift.save")
    path.write_text("id,age\n1,2\n")
    refuse(path, "not a model file; covshift.save")
    write_members(path, {"readme.txt": "hello"})
    refuse(path, "'readme.txt'")
    with pytest.raises(ModelFileError, match="readme"):
        read_card(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.skops")
    refuse(tmp_path / "pipe.skops", "not a regular file")
    with pytest.raises(ModelFileError, match="not a regular file"):
        load("/dev/zero")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refuse(path)


def test_flipped_bytes_are_refused_or_without_effect(path):
    """Checksums guard the members; headers hold bytes that nothing reads."""
    content = path.read_bytes()
    expected = load(path).predict_proba(X_NEW)
    rng = np.random.RandomState(0)
    refused = 0
    for position in rng.choice(len(content), 300, replace=False):
        damaged = bytearray(content)
        damaged[position] ^= rng.randint(1, 256)
        path.write_bytes(bytes(damaged))
        try:
            model = load(path)
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017 (either way is right)
            refused += 1
        else:
            np.testing.assert_array_equal(model.predict_proba(X_NEW), expected)
    assert refused > 200


@pytest.mark.parametrize("name", ["covshift.json", "schema.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", "7", '"text"', "\xff\xfe"])
def test_descriptions_that_are_not_there(path, name, content):
    members = read_members(path)
    write_members(path, {**members, name: content})
    refuse(path)
    del members[name]
    write_members(path, members)
    refuse(path, f"no {name}")


# Formats.


def test_a_newer_format_names_who_wrote_it(path):
    edit_document(path, format=2, covshift="7.1.0")
    refuse(path, "format 2", "covshift 7.1.0", "up to 1")
    with pytest.raises(ModelFileError, match="covshift 7"):
        read_card(path)


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0, None, [1]])
def test_a_format_that_is_none(path, version):
    edit_document(path, format=version)
    refuse(path, "Unknown format version")


@pytest.mark.parametrize("protocol", [0, 1, 3, 10**9, True, None])
def test_other_protocols_of_skops(path, protocol):
    edit_schema(path, lambda schema: schema.update(protocol=protocol))
    if protocol is not True:  # equals 1, which is another one too
        refuse(path, "protocol")
    refuse(path)


# Archives.


@pytest.mark.parametrize(
    "name",
    ["../evil.npy", "/tmp/evil.npy", "a/../../evil.npy", "..\\evil.npy", "C:evil.npy", "x" * 9999],
)
def test_members_that_point_elsewhere(path, name):
    members = read_members(path)
    write_members(path, {**members, name: b"evil"})
    refuse(path, "unexpected member")
    assert not os.path.exists("/tmp/evil.npy")
    assert not (path.parent.parent / "evil.npy").exists()


def test_members_that_are_links(path):
    members = read_members(path)
    with ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        link = ZipInfo("1.npy")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    refuse(path, "1.npy is a link")


def test_members_twice(path):
    members = read_members(path)
    with ZipFile(path, "w") as archive:
        for name, content in [*members.items(), ("covshift.json", members["covshift.json"])]:
            archive.writestr(name, content)
    refuse(path, "two members named covshift.json")


def test_unusual_compression_and_encryption(path):
    members = read_members(path)
    write_members(path, members, ZIP_LZMA)
    refuse(path, "unusual way")
    write_members(path, members, ZIP_STORED)
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1  # says that the first one is encrypted
    path.write_bytes(content)
    refuse(path, "encrypted")


# Size.


def test_a_zip_bomb_that_declares_itself(path):
    members = read_members(path)
    bomb = io.BytesIO()
    np.save(bomb, np.zeros(10**7))
    write_members(path, {**members, "1.npy": bomb.getvalue()})
    assert path.stat().st_size < 200_000
    refuse(path, "1.npy takes 76 MiB", "10 MiB", max_bytes=10 * 2**20)
    refuse(path, "MiB", max_bytes=1000)  # the file itself


def test_members_are_counted_together(path):
    members = read_members(path)
    zeros = bytes(2**20)
    write_members(path, {**members, **{f"{number}.npy": zeros for number in range(20)}})
    refuse(path, "What it holds takes 20 MiB", max_bytes=10 * 2**20)
    write_members(path, {**members, "covshift.json": b" " * (MAX_CARD_BYTES + 1)})
    refuse(path, "covshift.json takes 8 MiB")


def test_a_zip_bomb_that_lies_about_its_size(path):
    """No more is decompressed than is declared, and that is not what the checksum says."""
    members = read_members(path)
    name = next(name for name in members if name.endswith(".npy"))
    write_members(path, {**members, name: members[name] + bytes(10**8)})
    content = path.read_bytes()
    declared = struct.pack("<L", len(members[name]) + 10**8)
    assert content.count(declared) >= 1
    path.write_bytes(content.replace(declared, struct.pack("<L", len(members[name]))))
    refuse(path, max_bytes=10**6)


def test_huge_declared_arrays(path):
    members = read_members(path)
    for name in [name for name in members if name.endswith(".npy")]:
        for shape, dtype in (
            ((10**6, 10**6), "<f8"),
            ((10**15,), "<U0"),
            ((-3, -1), "<f8"),
            ((2**62, 4), "<f8"),
            ((3,), "|O"),
        ):
            header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
            forged = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n"
            write_members(path, {**members, name: forged + bytes(24)})
            refuse(path, f"array {name}")
        write_members(path, {**members, name: b"\x93NUMPY\x09\x09" + bytes(100)})
        refuse(path)


def test_archives_in_the_archive(tmp_path):
    """Sparse matrices are archives of arrays: their contents count too, and are checked."""
    path = tmp_path / "model.skops"
    model = AdaptedClassifier(DomainStandardScaler(with_mean=False), SVC())
    save(model.fit(sparse.csr_array(X), Y, **WHERE), path)
    members = read_members(path)
    name = next(name for name in members if name.endswith(".npz"))
    inner = read_members(io.BytesIO(members[name]))

    def forge(**arrays):
        changed = dict(inner)
        for part, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, values)
            changed[f"{part}.npy"] = buffer.getvalue()
        buffer = io.BytesIO()
        write_members(buffer, changed)
        write_members(path, {**members, name: buffer.getvalue()})

    forge()
    load(path)
    forge(data=np.zeros(10**7))
    refuse(path, "data.npy takes 76 MiB", max_bytes=10**7)
    indices = np.load(io.BytesIO(inner["indices.npy"]))
    forge(indices=np.where(indices == 0, 10**6, indices))
    message = refuse(path)
    assert "indices" in message or "index" in message  # SciPy's words, before 1.14 too
    forge(evil=np.zeros(3))
    refuse(path, "'evil.npy'")
    forge(format=np.array("dia"))
    refuse(path)


# Descriptions.


@pytest.mark.parametrize("name", ["covshift.json", "schema.json"])
@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_nested_a_million_deep(path, name, bracket):
    members = read_members(path)
    write_members(path, {**members, name: bracket * 10**6})
    refuse(path)


def test_objects_nested_deep(path):
    def nest(schema):
        inner = json_node(1, 1)
        for number in range(2, 150):  # as deep as JSON itself allows, three levels each
            inner = node("ListNode", "builtins", "list", number, content=[inner])
        attributes(schema)["adapter"] = inner

    edit_schema(path, nest)
    load(path)  # an odd parameter, no harm

    def nest_values(schema):
        attributes(schema)["adapter"] = node(
            "JsonNode", "builtins", "str", 5, content="[" * 10**5 + "]" * 10**5, is_json=True
        )

    edit_schema(path, nest_values)
    refuse(path)


def test_a_small_file_cannot_stand_for_many_objects(path):
    """References instead of descriptions would double at each level: 2 to the power of 60."""

    def double(schema):
        inner = json_node(1, 1)
        for number in range(2, 62):
            twice = [inner, {"__id__": inner["__id__"]}]
            inner = node("ListNode", "builtins", "list", number, content=twice)
        attributes(schema)["adapter"] = inner

    edit_schema(path, double)
    refuse(path)

    def double_in_two_ways(schema):
        inner = json_node(1, 1)
        for number in range(2, 62):
            other = node("ListNode", "builtins", "list", inner["__id__"], content=[])
            inner = node("ListNode", "builtins", "list", number, content=[inner, other])
        attributes(schema)["adapter"] = inner

    edit_schema(path, double_in_two_ways)
    refuse(path, "in two ways")


def test_a_cycle(path):
    def bite(schema):
        attributes(schema)["adapter"] = {"__id__": schema["__id__"]}

    edit_schema(path, bite)
    refuse(path)


def test_one_array_cannot_be_read_many_times(path):
    def repeat(schema):
        (name,) = {name for name in read_members(path) if name.endswith(".npy")} & {
            attributes(schema)["domains_"]["file"]
        }
        arrays = [
            node("NdArrayNode", "numpy", "ndarray", number, type="numpy", file=name)
            for number in range(1, 1000)
        ]
        attributes(schema)["adapter"] = node("ListNode", "builtins", "list", 5000, content=arrays)

    edit_schema(path, repeat)
    refuse(path, "share the array")


def test_each_member_is_unpacked_once(path, monkeypatch):
    """An object described again may have its array under another name: compared, not read again."""
    members = read_members(path)
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(10**5))

    def repeat(schema):
        arrays = [
            node("NdArrayNode", "numpy", "ndarray", 5, type="numpy", file=f"{number}.npy")
            for number in [1, *[2] * 40]
        ]
        attributes(schema)["adapter"] = node("ListNode", "builtins", "list", 6, content=arrays)

    write_members(path, {**members, "1.npy": zeros.getvalue(), "2.npy": zeros.getvalue()})
    edit_schema(path, repeat)
    n_unpacked = n_bytes = 0
    read = zipfile.ZipExtFile.read

    def count(self, n=-1):
        nonlocal n_unpacked, n_bytes
        data = read(self, n)
        if self.name in ("1.npy", "2.npy"):
            n_bytes += len(data)
            n_unpacked += len(data) if self._compress_type == ZIP_DEFLATED else 0
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", count)
    load(path)
    assert n_unpacked == 2 * len(zeros.getvalue())
    assert n_bytes < 6 * len(zeros.getvalue())


def test_descriptions_much_larger_than_their_file(path):
    """A value of three letters takes 72 bytes of memory once it is parsed."""
    members = read_members(path)
    write_members(path, {**members, "schema.json": b"[" + b"{}," * 10**7 + b"{}]"})
    refuse(path, "schema.json takes 29 MiB")
    write_members(path, {**members, "schema.json": b"[" + b"{}," * 10**6 + b"{}]"})
    refuse(path, "more than any model has")
    # Texts are not values.
    edit_schema(path_with(path, members), lambda schema: schema.update(note='[{\\",' * 10**5))
    load(path)


def path_with(path, members):
    write_members(path, members)
    return path


@pytest.mark.parametrize("file", ["../../etc/passwd", "schema.json", "missing.npy", 7, None])
def test_arrays_elsewhere(path, file):
    edit_schema(path, lambda schema: attributes(schema)["domains_"].update(file=file))
    refuse(path)


def test_spoiled_descriptions_are_refused_or_harmless(path):
    """Parts taken out, exchanged, or put in place of others, at random."""
    rng = np.random.RandomState(0)
    members = read_members(path)
    oddities = [None, 0, -1, 10**9, "x", [], {}, True, 1.5, "schema.json"]

    def places(value):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys):
            yield value, key
            if isinstance(value[key], dict | list):
                yield from places(value[key])

    refused = 0
    for _ in range(500):
        schema = json.loads(members["schema.json"])
        known = list(places(schema))
        value, key = known[rng.randint(len(known))]
        other, other_key = known[rng.randint(len(known))]
        spoiled = rng.randint(3)
        if spoiled == 0:
            value[key] = oddities[rng.randint(len(oddities))]
        elif spoiled == 1:
            value[key] = json.loads(json.dumps(other[other_key]))
        else:
            del value[key]
        write_members(path, {**members, "schema.json": json.dumps(schema)})
        try:
            load(path)
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017 (either way is right)
            refused += 1
    assert refused > 100


# Types.


@pytest.fixture
def hostile_module(tmp_path, monkeypatch):
    """A module that leaves a mark when it is imported, called or made."""
    folder = tmp_path / "modules"
    folder.mkdir()
    mark = folder / "mark"
    (folder / "hostile_module.py").write_text(
        f"""
open({str(mark)!r}, "a").write("imported")

class Evil:
    def __init__(self, *args):
        open({str(mark)!r}, "a").write("made")

def evil(*args):
    open({str(mark)!r}, "a").write("called")
"""
    )
    monkeypatch.syspath_prepend(str(folder))
    yield "hostile_module"
    assert not mark.exists()
    assert "hostile_module" not in sys.modules


LOADERS = [
    "ObjectNode",
    "FunctionNode",
    "TypeNode",
    "MethodNode",
    "OperatorFuncNode",
    "PartialNode",
    "ConstructorFromReduceNode",
    "DictNode",
    "ListNode",
    "TupleNode",
    "SetNode",
    "NdArrayNode",
    "MaskedArrayNode",
    "RandomStateNode",
    "RandomGeneratorNode",
    "TreeNode",
    "LossNode",
    "DTypeNode",
    "SparseMatrixNode",
    "CachedNode",
    "DefaultDictNode",
    "SliceNode",
    "BytesNode",
    "QuantileForestNode",
    "NoSuchNode",
]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("name", ["Evil", "evil"])
def test_a_forged_type_is_refused_and_its_module_not_imported(path, hostile_module, loader, name):
    empty = node("TupleNode", "builtins", "tuple", 11, content=[])
    contents = {
        "DictNode": {"content": {}, "key_types": node("ListNode", "builtins", "list", 12,
                                                      content=[])},
        "MethodNode": {"content": {"func": "predict", "obj": empty}},
        "NdArrayNode": {"content": [], "type": "json", "shape": empty},
        "RandomGeneratorNode": {"content": {"bit_generator": empty, "seed_seq": empty}},
        "ListNode": {"content": []}, "TupleNode": {"content": []}, "SetNode": {"content": []},
        "SliceNode": {"content": {"start": 1, "stop": 2, "step": 3}},
    }.get(loader, {"content": empty, "attrs": empty, "__reduce__": {"args": empty}})  # fmt: skip

    def forge(schema):
        attributes(schema)["adapter"] = node(loader, hostile_module, name, **contents)

    edit_schema(path, forge)
    if loader == "SliceNode":
        load(path)  # the name is not used: a plain slice is made
    else:
        refuse(path)


def test_the_refusal_names_the_type_and_what_to_do(path, hostile_module):
    forged = node("ObjectNode", hostile_module, "Evil")
    edit_schema(path, lambda schema: attributes(schema).update(adapter=forged))
    message = refuse(path, "hostile_module.Evil")
    assert "trusted=[" not in message  # a line to copy must not come from the file
    refuse(path, "hostile_module.Evil", trusted=["hostile_module.Other"])


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("subprocess", "Popen"),
        ("numpy", "load"),
        ("numpy.f2py", "compile"),
        ("sklearn.datasets._openml", "fetch_openml"),
        ("joblib.numpy_pickle", "load"),
        ("covshift.persistence.model_files", "save"),
        ("covshift.output_files", "write_whole"),
        ("sklearn", "svm._classes.SVC"),
        ("", "SVC"),
        ("sklearn.svm._classes.SVC", ""),
        ("..evil", "SVC"),
    ],
)
@pytest.mark.parametrize("loader", ["FunctionNode", "TypeNode", "ObjectNode"])
def test_functions_and_types_of_libraries(path, loader, module, name):
    forged = node(loader, module, name)
    edit_schema(path, lambda schema: attributes(schema).update(adapter=forged))
    refuse(path)


@pytest.mark.parametrize("number", [None, 0, -1, True, "1", 1.5, [1]])
def test_numbers_of_objects(path, number):
    forged = {**json_node(1, 1), "__id__": number}
    edit_schema(path, lambda schema: attributes(schema).update(adapter=forged))
    refuse(path)


def test_a_file_without_a_model(path):
    def empty(schema):
        inner = node("ListNode", "builtins", "list", content=[])
        protocol = schema["protocol"]
        schema.clear()
        schema.update(inner, protocol=protocol)

    edit_schema(path, empty)
    refuse(path, "holds a list, which is not a model")


# Contents: what compiled code would take for indices into memory.


def saved(estimator, path):
    save(AdaptedClassifier(DomainStandardScaler(), estimator).fit(X, Y, **WHERE), path)
    members = read_members(path)
    return members, {
        name: np.load(io.BytesIO(content), allow_pickle=False)
        for name, content in members.items()
        if name.endswith(".npy")
    }


def write_array(path, members, name, values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    write_members(path, {**members, name: buffer.getvalue()})


@pytest.mark.parametrize("field", ["left", "right", "feature_idx", "is_categorical", "is_leaf"])
def test_boosted_trees_that_point_outside(path, field):
    estimator = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=5)
    members, arrays = saved(estimator, path)
    name, nodes = next((name, a) for name, a in arrays.items() if a.dtype.names and len(a) > 1)
    for value in (10**6, 0) if field in ("left", "right") else (10**6 % 251,):
        forged = nodes.copy()
        forged[field][-1 if field == "is_leaf" else 0] = 0 if field == "is_leaf" else value
        write_array(path, members, name, forged)
        refuse(path, "HistGradientBoostingClassifier is inconsistent")
    write_array(path, members, name, nodes)
    load(path)


@pytest.mark.parametrize("field", ["left_child", "right_child", "feature"])
@pytest.mark.parametrize("value", [10**6, -7, 0])
def test_forests_that_point_outside(path, field, value):
    members, arrays = saved(RandomForestClassifier(1, random_state=0), path)
    name, nodes = next((name, a) for name, a in arrays.items() if a.dtype.names)
    inner = np.flatnonzero(nodes["left_child"] != -1)
    nodes = nodes.copy()
    nodes[field][inner] = value
    write_array(path, members, name, nodes)
    if (field, value) == ("feature", 0):
        load(path)  # a tree of one feature
    else:
        refuse(path, "DecisionTreeClassifier is inconsistent")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_forests_that_predict_no_number(path, value):
    members, arrays = saved(RandomForestClassifier(1, random_state=0), path)
    name, values = next((name, a) for name, a in arrays.items() if a.ndim == 3)
    write_array(path, members, name, np.full_like(values, value))
    refuse(path, "DecisionTreeClassifier is inconsistent")


def test_trees_that_are_made_from_too_little(path):
    saved(RandomForestClassifier(1, random_state=0), path)

    def tree_of(schema):
        forest = attributes(schema)["estimator_"]["content"]["content"]
        return forest["estimators_"]["content"][0]["content"]["content"]["tree_"]

    def more_outputs(schema):
        arguments = tree_of(schema)["__reduce__"]["args"]["content"]
        arguments[2] = json_node(10**6, 77)

    def fewer_nodes(schema):
        tree_of(schema)["content"]["content"]["node_count"] = json_node(1, 77)

    def more_features(schema):
        tree_of(schema)["__reduce__"]["args"]["content"][0] = json_node(99, 77)

    def other_arguments(schema):
        tree_of(schema)["__reduce__"]["args"]["content"][1] = json_node([1, 2], 77)

    def fewer_features_of_the_forest(schema):
        forest = attributes(schema)["estimator_"]["content"]["content"]
        forest["n_features_in_"] = json_node(1, 77)

    def a_loose_tree(schema):
        attributes(schema)["estimator_"] = tree_of(schema)

    good = read_members(path)
    for edit, match in (
        (more_outputs, "numbers of classes do not fit"),
        (fewer_nodes, "is inconsistent"),
        (more_features, "is inconsistent"),
        (other_arguments, "unusual way"),
        (fewer_features_of_the_forest, "RandomForestClassifier is inconsistent"),
        (a_loose_tree, "cannot be checked"),
    ):
        write_members(path, good)
        edit_schema(path, edit)
        refuse(path, match)


def test_one_object_cannot_have_two_arrays(path):
    """The first description would be made, after the second was checked."""
    saved(RandomForestClassifier(1, random_state=0), path)
    members = read_members(path)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(7))
    write_members(path, {**members, "123.npy": buffer.getvalue()})

    def describe_twice(schema):
        first = json.loads(json.dumps(attributes(schema)["domains_"]))
        first["file"] = "123.npy"
        attributes(schema)["adapter"] = first

    edit_schema(path, describe_twice)
    refuse(path, "in two ways")


def test_kernel_machines_that_point_outside(path):
    members, arrays = saved(SVC(), path)
    refused = 0
    for name, values in arrays.items():
        if values.ndim == 0 or not len(values):
            continue
        write_array(path, members, name, np.concatenate([values, values]))
        try:
            model = load(path)
        except ModelFileError as error:
            refused += "SVC is inconsistent" in str(error)
        else:
            del model  # another array: the scaler's, say
    assert refused >= 5

    edit_schema_of = {"n_features_in_": "7", "kernel": '"precomputed"'}
    for attribute, value in edit_schema_of.items():
        write_members(path, members)

        def forge(schema, attribute=attribute, value=value):
            machine = attributes(schema)["estimator_"]["content"]["content"]
            machine[attribute] = {**machine[attribute], "content": value, "__id__": 77}

        edit_schema(path, forge)
        refuse(path, "SVC is inconsistent")


def test_random_states_that_point_outside(tmp_path):
    path = tmp_path / "model.skops"
    model = SparseFiltering(max_iter=2, random_state=np.random.RandomState(0))
    save(model.fit(X, **WHERE), path)

    def forge(schema):
        state = attributes(schema)["random_state"]["content"]["content"]["state"]["content"]
        state["pos"] = json_node(10**6, 77)

    edit_schema(path, forge)
    # NumPy 2.5 refuses such a state itself; earlier versions take it, and read outside of it.
    own = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
    refuse(path, "state position" if own else "RandomState is inconsistent")


def test_random_generators_with_endless_seeds(path):
    saved(HistGradientBoostingClassifier(max_iter=1), path)

    def forge(schema):
        machine = attributes(schema)["estimator_"]["content"]["content"]
        generator = machine["_feature_subsample_rng"]
        assert generator["__loader__"] == "RandomGeneratorNode"
        pool = generator["content"]["seed_seq"]["content"]["pool_size"]
        pool.update(content=str(10**12), __id__=77)

    edit_schema(path, forge)
    refuse(path, "unusual seed")


def test_python_stops_at_the_declared_size():
    """What the limits rest on: `zipfile` never yields more than a member declares."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("1.npy", bytes(10**6))
    content = buffer.getvalue().replace(struct.pack("<L", 10**6), struct.pack("<L", 1000))
    with ZipFile(io.BytesIO(content)) as archive, pytest.raises(zipfile.BadZipFile):
        assert len(archive.read("1.npy")) <= 1000


def test_a_plain_pipeline_is_refused_by_its_card_only(path):
    """A file of skops that save did not write has no card."""
    skops_io = pytest.importorskip("skops.io")
    skops_io.dump(LogisticRegression().fit(X, Y), path)
    refuse(path, "no covshift.json")
