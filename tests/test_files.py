"""Files are written whole or not at all, and a bad one is named with the line at fault."""

import hashlib
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.files import read_json, read_yaml, sha256, write_atomically


def test_writes_text_and_bytes_and_makes_the_folder(tmp_path):
    text, raw = tmp_path / "deep/er/text.md", tmp_path / "raw.bin"
    write_atomically(text, "µs\n")
    write_atomically(raw, b"\r\n\x00")
    assert text.read_bytes() == b"\xc2\xb5s\n"
    assert raw.read_bytes() == b"\r\n\x00"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["raw.bin", "text.md"]


@pytest.mark.parametrize("content", ["new \ud800", None, 3], ids=["not encodable", "nothing", "a number"])
def test_content_that_cannot_be_written_leaves_the_old_file(tmp_path, content):
    path = tmp_path / "numbers.json"
    write_atomically(path, "old")
    with pytest.raises((UnicodeEncodeError, TypeError)):
        write_atomically(path, content)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("method", ["write_bytes", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_part(tmp_path, monkeypatch, method):
    path = tmp_path / "numbers.json"
    write_atomically(path, "old")
    honest = getattr(Path, method)

    def fails_half_way(self, argument):
        if method == "write_bytes":
            honest(self, argument[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, method, fails_half_way)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "newer")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": [2,\n', "line 3: found Expecting value, expected complete JSON"),
        ('{"a": 1', "line 1: found Expecting ',' delimiter, expected complete JSON"),
        ('{"a": "cut', "line 1: found Unterminated string starting at, expected complete JSON"),
        ("", "line 1: found Expecting value, expected complete JSON"),
        ("{}\n{}\n", "line 2: found Extra data, expected complete JSON"),
        (b"\xff{}", "line 1: found bytes that are not UTF-8, expected complete JSON"),
    ],
)
def test_bad_json_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "numbers.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as refused:
        read_json(path)
    assert str(refused.value) == f"{path}: {message}"


def test_missing_files_are_named(tmp_path):
    for read, kind in ((read_json, "JSON"), (read_yaml, "YAML")):
        with pytest.raises(InputError, match=f"none: file: found No such file or directory, expected a readable {kind} file"):
            read(tmp_path / "none")


def test_yaml_key_given_twice_at_any_depth(tmp_path):
    path = tmp_path / "inputs.yaml"
    path.write_text("a:\n  b:\n    c: 1\n    c: 2\n")
    with pytest.raises(InputError, match=r"line 4: found key 'c' twice, expected YAML with unique keys"):
        read_yaml(path)
    path.write_text("a:\n  c: 1\nb:\n  c: 2\n")
    assert read_yaml(path) == {"a": {"c": 1}, "b": {"c": 2}}


def test_yaml_that_would_run_code_is_refused(tmp_path):
    path = tmp_path / "inputs.yaml"
    path.write_text("a: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(InputError, match="line 1: found could not determine a constructor"):
        read_yaml(path)


def test_yaml_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "inputs.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(InputError, match="file: found bytes that are not UTF-8, expected a YAML file"):
        read_yaml(path)


def test_digest_is_of_the_bytes(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(b"a\r\n")
    assert sha256(path) == hashlib.sha256(b"a\r\n").hexdigest()
