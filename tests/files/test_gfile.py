"""Files under TensorFlow's names."""

from pathlib import Path

import pytest

import xlalite as tf
from xlalite.files import file_io
from xlalite.framework.graph.errors import AlreadyExistsError, NotFoundError


def test_files_are_written_read_and_moved(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "x.txt")
    tf.gfile.MakeDirs(str(tmp_path / "a"))
    tf.gfile.MakeDirs(str(tmp_path / "a"))
    with tf.gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
    with tf.gfile.Open(path) as file:
        assert file.readline() == "one\n"
        assert list(file) == ["two\n"]
        assert file.size() == 8
    assert tf.gfile.FastGFile(path, "rb").read() == b"one\ntwo\n"
    assert tf.gfile.Glob(str(tmp_path / "a" / "*")) == [path]
    assert tf.gfile.ListDirectory(str(tmp_path / "a")) == ["x.txt"]
    tf.gfile.Copy(path, path + "2")
    with pytest.raises(AlreadyExistsError):
        tf.gfile.Rename(path, path + "2")
    tf.io.gfile.rename(path, path + "2", overwrite=True)
    assert not tf.gfile.Exists(path)
    assert tf.gfile.Stat(path + "2").length == 8
    assert tf.gfile.IsDirectory(str(tmp_path / "a"))
    tf.gfile.Remove(path + "2")
    tf.gfile.DeleteRecursively(str(tmp_path / "a"))
    with pytest.raises(NotFoundError, match="No such file"):
        tf.gfile.GFile(path).read()


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_text_and_bytes_go_into_every_file(tmp_path: Path, mode: str) -> None:
    with tf.gfile.GFile(str(tmp_path / "x"), mode) as file:
        file.write("é")
        file.write(b"b")
    assert (tmp_path / "x").read_bytes() == "éb".encode()


def test_files_have_their_names_of_file_io(tmp_path: Path) -> None:
    folder, path = str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "x")
    file_io.recursive_create_dir(folder)
    file_io.write_string_to_file(path, "ä")
    assert file_io.file_exists(path)
    assert file_io.is_directory(folder)
    assert file_io.list_directory(folder) == ["x"]
    assert file_io.read_file_to_string(path) == "ä"
    assert file_io.read_file_to_string(path, binary_mode=True) == "ä".encode()
    file_io.delete_file(path)
    assert file_io.get_matching_files(path) == []
