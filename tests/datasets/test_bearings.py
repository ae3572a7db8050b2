"""Recordings of bearings: every layout that is read, and every way in which it can be wrong.

All files are written here; none of the recorded data are.
"""

import numpy as np
import pytest
from scipy.io import savemat, wavfile

from covshift.datasets import load_bearings
from covshift.signals import cut_windows

rng = np.random.default_rng(0)


# The head of a file that MATLAB saves with '-v7.3': HDF5 follows.
MATLAB_7_3 = b"MATLAB 7.3 MAT-file".ljust(124, b"\0") + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n"


def signal(n=300):
    return rng.normal(size=n)


def write_numbered(folder, number, n=300, rpm=1796.0, **more):
    """A file as Case Western Reserve publishes it."""
    name = f"X{number:03d}"
    arrays = {f"{name}_{one}_time": signal(n)[:, None] for one in ("DE", "FE", "BA")}
    savemat(folder / f"{number}.mat", {**arrays, f"{name}RPM": np.array([[rpm]]), **more})
    return arrays


def write_mfpt(path, load=270.0, **changes):
    path.parent.mkdir(parents=True, exist_ok=True)
    bearing = {"sr": 48_828.0, "gs": signal()[:, None], "load": load, "rate": 25.0, **changes}
    savemat(path, {"bearing": {name: one for name, one in bearing.items() if one is not None}})


def write_own(folder, table, **files):
    for name, samples in files.items():
        np.save(folder / f"{name}.npy", samples)
    (folder / "recordings.csv").write_text(table)
    return folder


# Case Western Reserve


def test_numbered_files(tmp_path):
    for number in (97, 106, 200, 3008):
        write_numbered(tmp_path, number)
    found = load_bearings(tmp_path)
    assert dict(zip(found.file_names, found.target, strict=True)) == {
        "97.mat": "Normal", "106.mat": "IR007", "200.mat": "OR014@6", "3008.mat": "B028",
    }  # fmt: skip
    order = np.argsort([int(name.removesuffix(".mat")) for name in found.file_names])
    assert found.load[order].tolist() == [0, 1, 3, 3]
    assert [found.domain_names[one] for one in found.domain[order]] == [
        "0 hp", "1 hp", "3 hp", "3 hp",
    ]  # fmt: skip
    assert found.domain_names == {0: "0 hp", 1: "1 hp", 2: "3 hp"}
    assert found.rate[order].tolist() == [48_000, 12_000, 12_000, 12_000]
    np.testing.assert_array_equal(found.size[order], [np.nan, 7, 14, 28])
    assert set(found.rpm) == {1796}
    assert "Case Western" in found.DESCR


def test_named_files_in_folders(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("IR007_0", "b021_3", "OR014@6_2", "Normal_1"):
        savemat(tmp_path / "deep" / f"{name}.mat", {"X105_DE_time": signal()[:, None]})
    found = load_bearings(tmp_path)
    assert sorted(found.target) == ["B021", "IR007", "Normal", "OR014@6"]
    assert dict(zip(found.load, found.rpm, strict=True)) == {0: 1797, 1: 1772, 2: 1750, 3: 1730}


def test_arrays_of_numpy(tmp_path):
    for name in ("1772_IR_7_DE12", "1730_OR@6_21_DE12", "1797_Normal"):
        np.savez(tmp_path / f"{name}.npz", DE=signal()[:, None], FE=signal()[:, None])
    found = load_bearings(tmp_path, channels=["DE", "FE"])
    assert dict(zip(found.target, found.load, strict=True)) == {
        "IR007": 1, "OR021@6": 3, "Normal": 0,
    }  # fmt: skip
    assert {one.shape for one in found.recordings} == {(300, 2)}


def test_channels_are_those_asked_for(tmp_path):
    arrays = write_numbered(tmp_path, 105)
    (fan,) = load_bearings(tmp_path, channels=["FE"]).recordings
    np.testing.assert_array_equal(fan, arrays["X105_FE_time"].ravel())
    (both,) = load_bearings(tmp_path, channels=["BA", "DE"]).recordings
    np.testing.assert_array_equal(both[:, 1], arrays["X105_DE_time"].ravel())


def test_of_two_recordings_in_a_file_its_own_is_read(tmp_path):
    """As in the archive, where 99.mat holds the arrays of 98 as well."""
    arrays = write_numbered(tmp_path, 99, X098_DE_time=signal(50)[:, None])
    (found,) = load_bearings(tmp_path).recordings
    np.testing.assert_array_equal(found, arrays["X099_DE_time"].ravel())


def test_other_files_are_left_alone(tmp_path):
    write_numbered(tmp_path, 105)
    (tmp_path / "notes.mat").write_bytes(b"not MATLAB")
    savemat(tmp_path / "28.mat", {"a": 1})
    (tmp_path / "readme.txt").write_text("hello")
    assert load_bearings(tmp_path).file_names == ["105.mat"]


@pytest.mark.parametrize("channels", ["DE", [], ["DE", "XX"]])
def test_unknown_channels(tmp_path, channels):
    write_numbered(tmp_path, 105)
    with pytest.raises(ValueError, match="channels must be some of 'DE', 'FE' and 'BA'"):
        load_bearings(tmp_path, channels=channels)


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "105.mat"
    write_numbered(tmp_path, 105)
    whole = path.read_bytes()
    for content in (b"", b"MATLAB?", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"105\.mat .*: the file is damaged or another one"):
            load_bearings(tmp_path)
    for arrays, match in [
        ({"X105_FE_time": np.ones(5)}, "has no channel DE .arrays: X105_FE_time"),
        ({"X105_DE_time": np.array(["text"])}, "where real numbers should be"),
        ({"X105_DE_time": np.array([1.0, np.nan, 2.0])}, "not finite"),
        ({"X105_DE_time": np.ones((2, 2, 2))}, r"shape \(2, 2, 2\)"),
        ({"X105_DE_time": np.array([[1.0]])}, "not a recording"),
    ]:
        savemat(path, arrays)
        with pytest.raises(ValueError, match=match):
            load_bearings(tmp_path)
    savemat(path, {"X105_DE_time": np.ones(5), "X105_FE_time": np.ones(6)})
    with pytest.raises(ValueError, match="different lengths"):
        load_bearings(tmp_path, channels=["DE", "FE"])
    path.unlink()
    (tmp_path / "1797_B_7_DE12.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"1797_B_7_DE12\.npz cannot be read"):
        load_bearings(tmp_path)


# MFPT


def test_mfpt(tmp_path):
    write_mfpt(tmp_path / "1 - Baseline" / "baseline_1.mat", sr=97_656.0)
    write_mfpt(tmp_path / "3 - Outer" / "OuterRaceFault_vload_2.mat", load=50.0)
    write_mfpt(tmp_path / "4 - Inner" / "InnerRaceFault_vload_1.mat", load=0.0)
    found = load_bearings(tmp_path)
    assert found.target.tolist() == ["Normal", "OR", "IR"]
    assert found.domain_names == {0: "0 lb", 1: "50 lb", 2: "270 lb"}
    assert found.domain.tolist() == [2, 1, 0]
    assert found.rpm.tolist() == [1500] * 3
    assert found.rate.tolist() == [97_656, 48_828, 48_828]
    assert {one.shape for one in found.recordings} == {(300,)}
    assert "MFPT" in found.DESCR


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"gs": None}, r"has no bearing\.gs"),
        ({"sr": None, "rate": None}, r"has no bearing\.sr, bearing\.rate"),
        ({"load": "heavy"}, r"no number in bearing\.sr"),
        ({"gs": np.array([1.0, np.inf])}, "not finite"),
    ],
)
def test_damaged_mfpt(tmp_path, changes, match):
    write_mfpt(tmp_path / "baseline_1.mat", **changes)
    with pytest.raises(ValueError, match=match):
        load_bearings(tmp_path)


def test_mfpt_without_its_structure(tmp_path):
    savemat(tmp_path / "baseline_1.mat", {"other": np.ones(3)})
    with pytest.raises(ValueError, match=r"has no bearing\.gs, bearing\.sr, "):
        load_bearings(tmp_path)


# One's own recordings


def test_own_table(tmp_path):
    table = "file,label,load,rpm,rate,domain\na.npy,fine,1,1500,100,left\nb.npy,worn,,,,right\n"
    found = load_bearings(write_own(tmp_path, table, a=signal(50), b=signal((40, 2))))
    assert found.target.tolist() == ["fine", "worn"]
    assert [found.domain_names[one] for one in found.domain] == ["left", "right"]
    np.testing.assert_array_equal(found.load, [1, np.nan])
    np.testing.assert_array_equal(found.rpm, [1500, np.nan])
    np.testing.assert_array_equal(found.rate, [100, np.nan])
    assert [one.shape for one in found.recordings] == [(50,), (40, 2)]
    assert all(isinstance(one, np.memmap) for one in found.recordings)


def test_without_domain_the_load_is_it(tmp_path):
    table = "label,file,load\nx,a.npy,10\nx,b.npy,9\n"
    found = load_bearings(write_own(tmp_path, table, a=signal(), b=signal()))
    assert found.domain_names == {0: "9", 1: "10"}
    (tmp_path / "recordings.csv").write_text("label,file\nx,a.npy\n")
    assert load_bearings(tmp_path).domain_names == {0: "all"}


def test_every_type_of_file(tmp_path):
    x = np.round(signal(40), 4)
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "b.npz", x)
    np.savez(tmp_path / "c.npz", left=x, right=-x)
    np.savetxt(tmp_path / "h.csv", np.column_stack([np.arange(40) // 2 / 100, x]), delimiter=",")
    savemat(tmp_path / "d.mat", {"x": x, "rate": 5.0})  # one number is not a recording
    np.savetxt(tmp_path / "e.csv", x)
    np.savetxt(
        tmp_path / "f.txt", np.column_stack([x, -x]), delimiter=";", header="l;r", comments=""
    )
    wavfile.write(tmp_path / "g.wav", 8000, x.astype(np.float32))
    rows = ["file,label,variable", *(f"{name},x," for name in ("a.npy", "b.npz", "d.mat", "e.csv"))]
    rows += ["c.npz,x,right", "f.txt,x,", "g.wav,x,", "c.npz,x,left right", "h.csv,x,"]
    found = load_bearings(write_own(tmp_path, "\n".join(rows)))
    for one in found.recordings[:4]:
        np.testing.assert_array_equal(one, x)
    np.testing.assert_array_equal(found.recordings[4], -x)
    np.testing.assert_array_equal(found.recordings[5], np.column_stack([x, -x]))
    np.testing.assert_array_equal(found.recordings[6], x.astype(np.float32))
    assert found.rate[6] == 8000
    np.testing.assert_array_equal(found.recordings[7], np.column_stack([x, -x]))
    np.testing.assert_array_equal(found.recordings[8], x)  # without the time


def test_another_name_of_the_table(tmp_path):
    write_own(tmp_path, "file,label\na.npy,x\n", a=signal())
    (tmp_path / "recordings.csv").rename(tmp_path / "list.csv")
    assert load_bearings(tmp_path, table="list.csv").file_names == ["a.npy"]
    with pytest.raises(FileNotFoundError, match=r"has no table other\.csv"):
        load_bearings(tmp_path, table="other.csv")


@pytest.mark.parametrize(
    ("table", "error", "match"),
    [
        ("name,label\na.npy,x\n", ValueError, "has no column file"),
        ("", ValueError, "has no column file and label"),
        ("file,label\n", FileNotFoundError, "has no recordings"),
        ("file,label\nz.npy,x\n", FileNotFoundError, r"names files that are not in .*: z\.npy\."),
        ("file,label\n" + "y,x\n" * 5, FileNotFoundError, "y, y, y, and 2 more"),
        ("file,label\n,x\n", ValueError, "line 2: the file is empty"),
        ("file,label\na.npy,x\na.npy,y\n", ValueError, r"a\.npy in lines 2 and 3: keep one"),
        ("file,label\nnew.mat,x\n", ValueError, r"new\.mat is a file of MATLAB 7\.3 .*'-v7'"),
        ("file,label\nwide.npy,x\n", ValueError, "2 samples of 300 channels: transpose it"),
        ("file,label\ncomma.csv,x\n", ValueError, r"comma\.csv seems .* decimal comma"),
        ("file,label,variable\ntwo.npz,x,p s\n", ValueError, r"different lengths \(p .*, s .*\)"),
        ("file,label\na.npy,\n", ValueError, "line 2: the label is empty"),
        ("file,label,rpm\na.npy,x,fast\n", ValueError, "line 2: rpm 'fast' is not a number"),
        ("file,label\nbad.npy,x\n", ValueError, r"bad\.npy cannot be read"),
        ("file,label\nbad.wav,x\n", ValueError, r"bad\.wav cannot be read"),
        ("file,label\nbad.csv,x\n", ValueError, r"bad\.csv cannot be read"),
        ("file,label\nbad.mp3,x\n", ValueError, r"type \.mp3 cannot be read"),
        (
            "file,label\ntwo.npz,x\n",
            ValueError,
            r"holds 3 arrays \(p, q, s\): name one in a column",
        ),
        ("file,label,variable\ntwo.npz,x,r\n", ValueError, "has no array 'r'"),
    ],
)
def test_tables_and_files_that_are_wrong(tmp_path, table, error, match):
    write_own(tmp_path, table, a=signal())
    for name in ("bad.npy", "bad.wav", "bad.mp3"):
        (tmp_path / name).write_bytes(b"\x00\x01 neither sound nor numbers")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\nx,y\n")
    (tmp_path / "new.mat").write_bytes(MATLAB_7_3)
    np.save(tmp_path / "wide.npy", signal().reshape(1, -1).repeat(2, axis=0))
    (tmp_path / "comma.csv").write_text("0,25\n-1,75\n0,5\n")
    np.savez(tmp_path / "two.npz", p=signal(), q=signal(), s=signal(299))
    with pytest.raises(error, match=match):
        load_bearings(tmp_path)


def test_a_table_that_is_no_text(tmp_path):
    (tmp_path / "recordings.csv").write_bytes(b"file,label\n\xff\xfe,x\n")
    with pytest.raises(ValueError, match="cannot be read as CSV"):
        load_bearings(tmp_path)


# Folders


def test_folders_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: give"):
        load_bearings(tmp_path / "nowhere")
    with pytest.raises(
        FileNotFoundError, match=r"has no recordings\. It should hold files of Case"
    ):
        load_bearings(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        load_bearings(tmp_path / "file")


def test_windows_of_recordings(tmp_path):
    for number in (105, 118):
        write_numbered(tmp_path, number)
    bearings = load_bearings(tmp_path, channels=["DE", "FE"])
    windows = cut_windows(bearings.recordings, 100, overlap=0.5)
    assert windows.X.shape == (10, 200)
    assert bearings.target[windows.recording].tolist() == ["IR007"] * 5 + ["B007"] * 5
