"""Files that are complete or absent: threads at once, a loss of power, symbolic links."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import covshift.output_files as files
from covshift.output_files import write_whole


@pytest.fixture(params=["unnamed", "named"])
def way(request, monkeypatch):
    """Both ways to write: with a file that has no name yet, and with a temporary name."""
    if request.param == "named":
        monkeypatch.setattr(files, "_open_unnamed", lambda folder: None)


@pytest.mark.usefixtures("way")
def test_many_threads_write_one_file(tmp_path):
    path = tmp_path / "model"
    contents = [bytes([number]) * 10_000 for number in range(30)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: write_whole(path, lambda file: file.write(one)), contents))
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be flushed")
@pytest.mark.usefixtures("way")
def test_contents_and_then_the_name_reach_the_disk(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync

    def spy(descriptor):
        fsync(descriptor)
        where = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        is_named = (tmp_path / "model").exists()
        flushed.append(("folder" if where == tmp_path else where.parent == tmp_path, is_named))

    monkeypatch.setattr(os, "fsync", spy)
    write_whole(tmp_path / "model", lambda file: file.write(b"content"))
    assert flushed == [(True, False), ("folder", True)]


def test_a_folder_that_cannot_be_flushed(tmp_path, monkeypatch):
    fsync = os.fsync

    def refuse_folders(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_whole(tmp_path / "model", lambda file: file.write(b"content"))
    assert (tmp_path / "model").read_bytes() == b"content"


def test_a_folder_that_may_be_written_to_but_not_read(tmp_path, monkeypatch):
    opened = os.open

    def refuse(path, flags, *args, **options):
        if flags == os.O_RDONLY and Path(path) == tmp_path:  # root may read anywhere
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    write_whole(tmp_path / "model", lambda file: file.write(b"content"))
    assert (tmp_path / "model").read_bytes() == b"content"


@pytest.mark.usefixtures("way")
def test_threads_and_processes_write_one_file(tmp_path):
    program = (
        "import sys, pathlib; from concurrent.futures import ThreadPoolExecutor\n"
        "from covshift.output_files import write_whole\n"
        "def write(number):\n"
        "    content = bytes([number]) * 10_000\n"
        "    write_whole(pathlib.Path(sys.argv[1]), lambda file: file.write(content))\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(write, range(30)))\n"
    )
    path = tmp_path / "model"
    command = [sys.executable, "-c", program, str(path)]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    while any(one.poll() is None for one in others):
        write_whole(path, lambda file: file.write(b"x" * 10_000))
        assert len(set(path.read_bytes())) == 1
    assert [one.communicate()[1] for one in others] == [b"", b""]
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "model", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_whole(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
