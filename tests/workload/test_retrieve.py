"""Traces from a folder and from a server of our own that cuts connections, sends the wrong content, or knows no ranges."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.workload import retrieve, traces
from kvtier.workload.retrieve import Source

CONTENT = bytes(range(256)) * 400
SOURCES = Path(__file__).resolve().parents[2] / "data/inputs/traces.yaml"


def source(url=None, content=CONTENT):
    return Source("sample", "sample.jsonl", "generic", hashlib.sha256(content).hexdigest(), len(content), url, "us", "MIT", "none", "none")


class Server:
    """Serves CONTENT; `cuts` are bytes after which each of the first answers ends."""

    def __init__(self, content=CONTENT, cuts=(), ranges=True, status=None):
        outer, self.asked, self.content = self, [], content
        remaining = list(cuts)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                wanted = self.headers.get("Range")
                outer.asked.append(wanted)
                if status:
                    self.send_error(status)
                    return
                start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and ranges else 0
                if start >= len(outer.content):
                    self.send_error(416)
                    return
                body = outer.content[start:]
                self.send_response(206 if wanted and ranges else 200)
                if wanted and ranges:
                    self.send_header("Content-Range", f"bytes {start}-{len(outer.content) - 1}/{len(outer.content)}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: remaining.pop(0)] if remaining else body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/trace.jsonl"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "traces" / "sample.jsonl"


def files(target):
    return sorted(path.name for path in target.parent.iterdir())


def test_downloads_and_checks(target):
    with Server() as server:
        retrieve.download(source(server.url), target)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None]
    assert files(target) == ["sample.jsonl"]


def test_goes_on_where_the_connection_was_cut(target):
    with Server(cuts=[1_000, 0, 50_000]) as server:
        retrieve.download(source(server.url), target, pause_s=0)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=1000-", "bytes=51000-"]
    assert files(target) == ["sample.jsonl"]


def test_goes_on_with_what_an_earlier_run_left(target):
    target.parent.mkdir()
    Path(f"{target}.part").write_bytes(CONTENT[:70_000])
    with Server() as server:
        retrieve.download(source(server.url), target)
    assert target.read_bytes() == CONTENT
    assert server.asked == ["bytes=70000-"]


def test_a_server_without_ranges_sends_all_of_it_again(target):
    with Server(cuts=[1_000], ranges=False) as server:
        retrieve.download(source(server.url), target, pause_s=0)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


def test_what_an_earlier_run_left_of_another_content_is_dropped(target):
    target.parent.mkdir()
    for left in (b"x" * 70_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)):
        Path(f"{target}.part").write_bytes(left)
        with Server() as server:
            retrieve.download(source(server.url), target)
        assert target.read_bytes() == CONTENT
        assert server.asked[-1] is None


@pytest.mark.parametrize("content", [b"y" + CONTENT[1:], CONTENT + b"more"])
def test_wrong_content_is_refused_and_nothing_is_left(target, content):
    with Server(content) as server, pytest.raises(InputError, match=r"sha256 of the content: found .* expected [0-9a-f]{64}, trace sample"):
        retrieve.download(source(server.url), target)
    assert files(target) == []


def test_shorter_content_is_given_up(target):
    with Server(CONTENT[:-7]) as server, pytest.raises(InputError, match=r"102393 of 102400 bytes|0 of 102400 bytes"):
        retrieve.download(source(server.url), target, pause_s=0)
    assert not target.exists()
    assert len(server.asked) < 20


def test_a_server_that_always_cuts_is_given_up_and_what_came_is_kept(target):
    with Server(cuts=[1_000] + [0] * 50) as server, pytest.raises(InputError, match=r"download: found 1000 of 102400 bytes .*5 attempts"):
        retrieve.download(source(server.url), target, pause_s=0)
    assert len(server.asked) == 6
    assert files(target) == ["sample.jsonl.part"]


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (403, 1), (503, 5)])
def test_a_server_that_says_no(target, status, attempts):
    with Server(status=status) as server, pytest.raises(InputError, match=r"127\.0\.0\.1") as raised:
        retrieve.download(source(server.url), target, pause_s=0)
    assert len(server.asked) == attempts
    assert "\n" not in str(raised.value)
    assert not target.exists()


def test_no_server_at_all(target):
    with Server() as server:
        url = server.url
    with pytest.raises(InputError, match="download: found 0 of 102400 bytes"):
        retrieve.download(source(url), target, pause_s=0)


@pytest.mark.parametrize("url", [None, "file:///etc/hostname"])
def test_only_http_is_an_address(target, url):
    with pytest.raises(InputError, match="from a folder only"):
        retrieve.download(source(url), target)


@pytest.mark.parametrize("name", ["sample.jsonl", "sample.jsonl.gz"])
def test_takes_from_a_folder(tmp_path, target, name):
    place = tmp_path / "folder"
    place.mkdir()
    (place / name).write_bytes(gzip.compress(CONTENT) if name.endswith("gz") else CONTENT)
    found = retrieve.find(source(), place)
    assert found == place / name
    retrieve.take(source(), found, target)
    assert target.read_bytes() == CONTENT
    assert files(target) == ["sample.jsonl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"y" + CONTENT[1:]), "sha256 of the content"),
        (gzip.compress(CONTENT + b"more"), "more than 102400 bytes"),
        (gzip.compress(CONTENT)[:-20], "truncated or damaged gzip"),
        (b"", "sha256 of the content"),
    ],
)
def test_what_a_folder_has_is_checked_too(tmp_path, target, content, message):
    found = tmp_path / "sample.jsonl.gz"
    found.write_bytes(content)
    target.parent.mkdir()
    target.write_bytes(b"before")
    with pytest.raises(InputError, match=message):
        retrieve.take(source(), found, target)
    assert files(target) == ["sample.jsonl"]
    assert target.read_bytes() == b"before"


def test_the_environment_goes_before_the_configuration(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert retrieve.folder(str(one), {"KVTIER_TRACES": str(other)}) == other
    assert retrieve.folder(str(one), {}) == one
    assert retrieve.folder("", {"KVTIER_TRACES": ""}) is None
    with pytest.raises(InputError, match=r"KVTIER_TRACES: folder: found .*absent, expected an existing folder"):
        retrieve.folder(None, {"KVTIER_TRACES": str(tmp_path / "absent")})
    with pytest.raises(InputError, match=r"traces\.folder: folder: found absent"):
        retrieve.folder("absent", {})


def test_what_cannot_be_had_is_named_in_one_line(tmp_path):
    here, there, nowhere = source(), source("http://127.0.0.1/"), source()
    (tmp_path / "sample.jsonl").write_bytes(CONTENT)
    assert retrieve.available([here], tmp_path, False) == ([here], "")
    assert retrieve.available([there], None, True) == ([there], "")
    have, line = retrieve.available([there, nowhere], None, False)
    assert have == []
    assert line.startswith("traces skipped: sample, sample (set KVTIER_TRACES")
    assert "\n" not in line


def test_sources_say_whose_they_are():
    sources = retrieve.read_sources(SOURCES)
    assert list(sources) == ["conversation", "synthetic", "agentic", "code", "conv"]
    assert {one.licence for one in sources.values()} == {"Apache-2.0", "CC-BY-4.0"}
    assert all(len(one.sha256) == 64 and one.format in traces.FORMATS for one in sources.values())
    assert [name for name, one in sources.items() if one.url is None] == ["agentic"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one: 5", "one: found int, expected exactly the fields"),
        ("one: {file: x}", "one: found file, expected exactly the fields"),
        (SOURCES.read_text().replace("bytes: 3029533", "bytes: many"), r"conversation\.bytes: found 'many', expected a number"),
        (SOURCES.read_text().replace("licence: CC-BY-4.0", "licence: 4"), r"code\.licence: found 4, expected text"),
    ],
)
def test_fault_in_sources(tmp_path, text, message):
    path = tmp_path / "traces.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        retrieve.read_sources(path)


@pytest.mark.parametrize("name", ["conversation", "synthetic", "agentic", "code", "conv"])
def test_public_traces_are_what_the_list_says(tmp_path, name):
    place = retrieve.folder(None)
    if place is None:
        pytest.skip("KVTIER_TRACES does not name a folder with the public traces")
    one = retrieve.read_sources(SOURCES)[name]
    retrieve.take(one, retrieve.find(one, place), tmp_path / one.file)
    assert traces.recognise(tmp_path / one.file) == one.format
