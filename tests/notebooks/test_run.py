"""What runs a notebook says no: planted errors, warnings, typed numbers, undeclared reads, writes, the network, other processes."""

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.publish.notebooks import page, run

HEAD = "# %% [markdown]\n# # A title\n#\n# Words.\n\n# %%\nx = 1\n\n"

pytestmark = pytest.mark.xdist_group("notebooks")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder to run in, from which messages name the notebook."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "declared.txt").write_text("read me\n")
    (folder / "other.txt").write_text("not me\n")
    monkeypatch.chdir(folder)
    return folder


def executed(checkout, *cells):
    (checkout / "notebook.py").write_text(HEAD + "".join(f"# %%\n{cell}\n\n" for cell in cells), encoding="utf-8")
    return run.execute("notebook.py", run.read("notebook.py"), checkout, ["declared.txt"])


def said(notebook):
    return "".join(output.text for cell in notebook.cells for output in cell.get("outputs", ()) if output.output_type == "stream")


def test_outputs_stand_with_their_cells(checkout):
    notebook = executed(checkout, "print(x + 1)", "x + 2")
    assert said(notebook) == "2\n"
    assert notebook.cells[-1].outputs[0].data["text/plain"] == "3"
    assert [cell.id for cell in notebook.cells] == ["cell-1", "cell-2", "cell-3", "cell-4"]


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("y = 1\nraise ValueError('planted\\nmore')", "ValueError: planted"),
        ("assert x == 2", "AssertionError: no message"),
        ("import os\nos._exit(3)", "a kernel that died"),
        ("import warnings\nwarnings.warn('planted', stacklevel=1)", "on stderr: "),
    ],
)
def test_the_cell_that_fails_is_named(checkout, cell, found):
    with pytest.raises(InputError, match=f"^notebook.py: cell 4, line 13: found {found}"):
        executed(checkout, "y = x", cell)


def test_a_cell_that_hangs_is_named(checkout, monkeypatch):
    monkeypatch.setattr(run, "CELL_LIMIT_S", 2)
    with pytest.raises(InputError, match=r"^notebook.py: cell 3, line 10: found nothing after 2 s"):
        executed(checkout, "import time\ntime.sleep(60)")


def test_reads_what_is_declared_alone(checkout):
    assert said(executed(checkout, "print(open('declared.txt').read(), end='')")) == "read me\n"
    with pytest.raises(InputError, match=r"cell 3, .*a notebook may not read other.txt: it is no input of its rule"):
        executed(checkout, "open('other.txt')")


@pytest.mark.parametrize(
    ("cell", "refused"),
    [
        ("open('new.txt', 'w')", "may not write new.txt"),
        ("open('declared.txt', 'a')", "may not write declared.txt"),
        ("import pathlib\npathlib.Path('new').mkdir()", "may not write new"),
        ("import os\nos.remove('declared.txt')", "may not write declared.txt"),
        ("import os\nos.rename('declared.txt', 'new.txt')", "may not write declared.txt"),
        ("import os\nos.open('new.txt', os.O_WRONLY | os.O_CREAT)", "may not write new.txt"),
        ("import pathlib\nopen(pathlib.Path.home() / 'new.txt', 'w')", "may not write "),
        ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')", "may not use socket"),
        ("import subprocess\nsubprocess.run(['true'])", "may not use subprocess.Popen"),
    ],
)
def test_neither_writes_nor_network_nor_processes(checkout, cell, refused):
    before = sorted(path.name for path in checkout.iterdir())
    with pytest.raises(InputError, match=rf"cell 3, line 10: found .*{refused}"):
        executed(checkout, cell)
    assert (checkout / "declared.txt").read_text() == "read me\n"
    assert sorted(path.name for path in checkout.iterdir()) == sorted({*before, "notebook.py"})


def test_the_temporary_folder_can_be_written_and_is_gone_afterwards(checkout):
    cell = "import tempfile, pathlib\nfolder = pathlib.Path(tempfile.mkdtemp())\n(folder / 'a').write_text('b')\nprint(folder)"
    assert not Path(said(executed(checkout, cell)).strip()).exists()


def test_the_user_has_no_say(checkout, tmp_path, monkeypatch):
    """A start-up file, a kernel and a template of the user's own are passed over; nothing is left in the home."""
    home = tmp_path / "home"
    startup = home / ".ipython/profile_default/startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("x = 'of the user'\nprint('started')\n")
    kernel = home / ".local/share/jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text('{"argv": ["false"], "display_name": "mine", "language": "python"}')
    template = home / ".local/share/jupyter/nbconvert/templates/basic"
    template.mkdir(parents=True)
    (template / "index.html.j2").write_text("mine")
    monkeypatch.setenv("HOME", str(home))
    before = sorted(home.rglob("*"))
    notebook = executed(checkout, "print(x)")
    assert said(notebook) == "1\n"
    assert "Words." in page.body(notebook)
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "where", "number"),
    [
        ("# %% [markdown]\n# # Title\n#\n# It hits 44.18 % of blocks.\n\n# %%\nx = 1\n", "cell 1, line 4", "44.18"),
        ("# %% [markdown]\n# # Title\n\n# %%\nx = 1\ny = f'a caption of 12 blocks: {x}'\n", "cell 2, line 6", "12"),
    ],
)
def test_a_typed_number_is_refused(tmp_path, text, where, number):
    path = tmp_path / "notebook.py"
    path.write_text(text, encoding="utf-8")
    notebook = run.read(path)
    with pytest.raises(InputError, match=rf"notebook.py: {where}: found the bare number {number}"):
        run.check_words(path, notebook, {})
    assert run.check_words(path, notebook, {r"44\.18 %|12 blocks": "planted"}) == 1


def test_a_raw_cell_is_prose(tmp_path):
    path = tmp_path / "notebook.py"
    path.write_text("# %% [markdown]\n# # Title\n\n# %%\nx = 1\n\n# %% [raw]\n# It hits 44.18 % of blocks.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"notebook.py: cell 3, line \d+: found the bare number 44.18"):
        run.check_words(path, run.read(path), {})


@pytest.mark.parametrize("code", ["x = (", "!ls"])
def test_a_cell_that_is_no_python_is_told_in_one_line(tmp_path, code):
    path = tmp_path / "notebook.py"
    path.write_text(f"# %% [markdown]\n# # Title\n\n# %%\n{code}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"notebook.py: cell 2, line 5: found .*, expected Python"):
        run.check_words(path, run.read(path), {})


def test_a_file_that_is_no_notebook_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.py: file: found No such file"):
        run.read(tmp_path / "none.py")
    (tmp_path / "prose.py").write_text("# %% [markdown]\n# # Title\n")
    with pytest.raises(InputError, match=r"prose.py: cells: found no code"):
        run.read(tmp_path / "prose.py")
