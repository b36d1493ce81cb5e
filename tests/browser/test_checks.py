"""Each check is shown a page with its defect and says so, and a sound page, of which it says nothing."""

import http.server
import threading

import checks
import chromium
import pytest

pytestmark = pytest.mark.browser

SOUND = """
<header><a href="#results">To the results</a></header>
<main>
  <h1>Hit rates</h1>
  <p>Text <b>with</b> <code>inline</code> parts<sub>2</sub> that go on for longer than one line does at 360 px, and then some.</p>
  <h2 id="results">Results</h2>
  <a href="#n/sim.rev2.hit">44.18</a> <button style="padding: 4px">Copy</button>
  <details><summary>More</summary><p>Closed.</p></details>
  <span style="position:absolute; width:1px; height:1px; overflow:hidden; white-space:nowrap">for screen readers alone</span>
  <div class="scrolls" style="overflow-x:auto" tabindex="0" role="region" aria-label="Wide table"><div style="width:2000px">wide</div></div>
  <figure aria-labelledby="drawn" style="margin: 0">
    <svg id="chart" viewBox="0 0 300 100" width="300" height="100" role="img" aria-label="Hit rate by budget">
      <text x="10" y="20" font-size="12">first <tspan font-weight="bold">line</tspan><tspan x="10" dy="14">second line</tspan></text>
      <text class="rim" aria-hidden="true" x="150" y="50" font-size="12" stroke="white">halo</text>
      <text x="150" y="50" font-size="12">halo</text>
      <text transform="translate(280 90) rotate(-90)" font-size="12">turned gp</text>
      <text transform="translate(294 90) rotate(-90)" font-size="12">turned gp</text>
    </svg>
    <figcaption id="drawn">Hit rate by budget</figcaption>
  </figure>
</main>
"""


def svg(inner, more="", size='width="300" height="100"'):
    return f'<svg id="chart" viewBox="0 0 300 100" {size} {more}>{inner}</svg>'


def only(found):
    """The one thing that was found."""
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("width", checks.WIDTHS_PX)
def test_a_sound_page_passes(written, width):
    page = written(SOUND, width=width)
    for check in (
        checks.console,
        checks.network,
        checks.sideways,
        checks.overlapping_text,
        checks.text_out_of_drawing,
        checks.small_text,
        checks.text,
        checks.structure,
        checks.links,
        checks.keyboard,
        checks.accessibility,
    ):
        assert check(page) == [], check.__name__


@pytest.mark.parametrize("width", checks.WIDTHS_PX)
def test_the_viewport_is_as_wide_as_it_says(written, width):
    page = written("<p>Words</p>", width=width, height=700)
    assert page.run("return [innerWidth, innerHeight, document.documentElement.clientWidth]") == [width, 700, width]


def test_preferences_reach_the_page(written):
    asks = "return ['(prefers-color-scheme: dark)', 'print', '(prefers-reduced-motion: reduce)'].map((query) => matchMedia(query).matches)"
    assert written("").run(asks) == [False, False, False]
    assert written("", dark=True, printed=True, reduced_motion=True).run(asks) == [True, True, True]
    assert written("").run(asks) == [False, False, False]


def test_each_opening_is_a_first_visit_and_a_reload_is_not(written):
    page = written("")
    page.run("localStorage.setItem('theme', 'dark')")
    page.browser.chrome.refresh()
    assert page.run("return localStorage.getItem('theme')") == "dark"
    assert written("").run("return localStorage.getItem('theme')") is None


def test_no_browser_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(chromium.shutil, "which", lambda name: None)
    with pytest.raises(chromium.Missing, match=r"^The browser tests need .*apt-get install chromium chromium-driver\)$"):
        chromium.executables()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("console.error('no such claim')", "no such claim"),
        ("console.warn('deprecated')", "deprecated"),
        ("nothing.here", "nothing is not defined"),
        ("Promise.reject('refused')", "unhandled rejection: refused"),
        ("addEventListener('error', (e) => e.preventDefault()); throw Error('silenced')", "silenced"),
    ],
)
def test_console(written, script, said):
    assert any(said in line for line in checks.console(written(f"<script>{script}</script>")))


def test_console_is_quiet_about_plain_words(written):
    assert checks.console(written("<script>console.log('drawn'); console.info('drawn')</script>")) == []


def test_console_of_the_page_before_is_forgotten(written):
    assert checks.console(written("<script>console.error('before')</script>"))
    assert checks.console(written("")) == []


@pytest.fixture
def served(tmp_path):
    """Address of a server on this host, that a request can reach."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_network_answered(written, served):
    page = written("<script>fetch(location.hash.slice(1), { mode: 'no-cors' }).catch(() => {})</script>", fragment=f"{served}/answered")
    assert f"request: {served}/answered" in checks.network(page)


@pytest.mark.parametrize(
    ("body", "head", "said"),
    [
        ('<img alt="" src="http://127.0.0.1:9/a.png">', "", "request: http://127.0.0.1:9/a.png"),
        ('<img alt="" src="beside.png">', "", "/beside.png"),
        (
            '<img alt="" src="http://127.0.0.1:9/b.png" loading="lazy" style="margin-top: 90000px">',
            "",
            "<img> refers to http://127.0.0.1:9/b.png",
        ),
        ("", "<style>.unused { background: url('http://127.0.0.1:9/c.png') }</style>", "a style refers to http://127.0.0.1:9/c.png"),
        ("", "<style>@import 'http://127.0.0.1:9/d.css';</style>", "a style refers to http://127.0.0.1:9/d.css"),
        ("", '<link rel="preconnect" href="http://127.0.0.1:9/">', "<link> refers to http://127.0.0.1:9/"),
        ("<script>new WebSocket('ws://127.0.0.1:9/')</script>", "", "web socket: ws://127.0.0.1:9/"),
        (
            "<script>fetch('http://127.0.0.1:9/e').catch(() => {})</script>",
            '<meta http-equiv="Content-Security-Policy" content="default-src \'unsafe-inline\'">',
            "http://127.0.0.1:9/e",
        ),
    ],
)
def test_network(written, body, head, said):
    page = written(body, head)
    assert any(said in line for line in checks.network(page) + checks.console(page))


def test_network_lets_a_page_carry_its_own(written):
    carried = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    body = f"""<img alt="" src="{carried}"><svg><defs><g id="mark"></g></defs><use href="#mark"/></svg>
      <script>fetch(URL.createObjectURL(new Blob(["x"])))</script>"""
    page = written(body, f'<style>p {{ background: url("{carried}") }}</style><link rel="canonical" href="http://127.0.0.1:9/">')
    page.settle()
    assert checks.network(page) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">', "image-alt (critical): "),
        ('<p style="color:#999; background:#fff">Pale</p>', "color-contrast (serious): "),
        ("<button></button>", "button-name (critical): "),
        ("<h1>One</h1><h4>Four</h4>", "heading-order (moderate): "),
        (
            '<button style="width:12px; height:12px; padding:0">a</button><button style="width:12px; height:12px; padding:0">b</button>',
            "target-size",
        ),
    ],
)
def test_accessibility(written, body, said):
    assert any(line.startswith(said) for line in checks.accessibility(written(f"<main>{body}</main>")))


def test_accessibility_is_checked_in_the_dark_too(written):
    head = "<style>@media (prefers-color-scheme: dark) { body { background: #000; color: #333 } }</style>"
    body = "<main><h1>Hit rates</h1><p>Dark</p></main>"
    assert checks.accessibility(written(body, head)) == []
    line = only(checks.accessibility(written(body, head, dark=True)))
    assert line.startswith("color-contrast (serious): ")
    assert line.endswith("2 times: h1, p")


def test_too_wide(written):
    body = '<main><div id="wide" style="width: 700px">wide</div></main>'
    assert checks.sideways(written(body, width=1024)) == []
    line = only(checks.sideways(written(body, width=480)))
    assert "px wide in 480 px: <div#wide>" in line


def test_scrolls_sideways_without_saying_so(written):
    line = only(checks.sideways(written('<div id="box" style="overflow-x: auto; width: 200px"><div style="width: 700px">wide</div></div>')))
    assert line.startswith("<div#box>")


@pytest.mark.parametrize(
    "inner",
    [
        '<text x="10" y="50">budget</text><text x="30" y="52">policy</text>',
        '<text x="10" y="50">budget<tspan x="10" dy="6">policy</tspan></text>',
        '<text x="10" y="50">budget</text><text x="10" y="50" aria-hidden="true">policy</text>',
        '<text transform="translate(50 90) rotate(-90)">budget</text><text transform="translate(56 90) rotate(-90)">policy</text>',
        '<text transform="translate(50 10) rotate(90)">budget</text><text transform="translate(56 10) rotate(90)">policy</text>',
        '<g transform="translate(0 40)"><text x="10">budget</text></g><g transform="translate(20 40)"><text>policy</text></g>',
    ],
)
def test_overlapping_in_a_drawing(written, inner):
    line = only(checks.overlapping_text(written(svg(inner))))
    assert line.startswith('svg#chart: "budget" and "policy" overlap by ')


@pytest.mark.parametrize(
    "inner",
    [
        '<text x="10" y="30">budget</text><text x="10" y="46">policy</text>',
        '<text x="10" y="30">budget</text><text x="10" y="30" class="rim" aria-hidden="true">budget</text>',
        '<text x="10" y="30">budget</text><text x="10" y="30" visibility="hidden">policy</text>',
        '<text x="10" y="30">budget</text><text x="10" y="30" opacity="0">policy</text>',
        '<text x="10" y="30">budget</text><g display="none"><g><text x="10" y="30">policy</text></g></g>',
        '<text x="10" y="30">budget</text><defs><text x="10" y="30">policy</text></defs>',
    ],
)
def test_not_overlapping_in_a_drawing(written, inner):
    assert checks.overlapping_text(written(svg(inner))) == []


@pytest.mark.parametrize(
    "body",
    [
        '<h2>budget</h2><p style="margin-top: -50px">policy</p>',
        '<div><span style="position: absolute">budget</span><span>policy</span></div>',
        '<table style="table-layout: fixed; width: 40px; border-spacing: 0"><tr><td>budget-budget</td><td>policy</td></tr></table>',
        '<p style="width: 60px; line-height: 4px">budget policy</p>',
        f'<div style="position: relative">{svg("<text y=30>budget</text>")}<p style="position: absolute; top: 0">policy</p></div>',
    ],
)
def test_overlapping_outside_drawings(written, body):
    page = written(body)
    found = checks.overlapping_text(page)
    assert found
    assert all('"budget' in line and "policy" in line for line in found)


def test_what_is_fixed_may_lie_over_the_rest(written):
    assert (
        checks.overlapping_text(written('<div style="position: fixed; top: 0; background: #fff">bar</div><p>Words that it covers</p>'))
        == []
    )


def test_many_texts_are_swept(written):
    inner = "".join(f'<text x="{10 + 60 * (i % 20)}" y="{20 + 14 * (i // 20)}" font-size="12">n{i}</text>' for i in range(6000))
    page = written(f'<svg id="grid" width="1220" height="4300">{inner}<text x="12" y="30" font-size="12">planted</text></svg>')
    found = checks.overlapping_text(page)
    assert found
    assert all('"planted"' in line for line in found)


@pytest.mark.parametrize("at", ['x="290" y="50"', 'x="-5" y="50"', 'x="10" y="5"', 'x="10" y="108"'])
def test_text_out_of_a_drawing(written, at):
    line = only(checks.text_out_of_drawing(written(svg(f"<text {at} font-size='12'>budget</text>"))))
    assert line.startswith('svg#chart: "budget" sticks out of its svg by ')


def test_small_text(written):
    body = svg('<text x="10" y="50" font-size="12">budget</text>', size='style="width: 80%"')
    assert checks.small_text(written(body, width=360)) == []
    line = only(checks.small_text(written(body, width=320)))
    # 80 % of what 320 px leave beside two margins of 8 px, for 300 units of the drawing.
    assert line == f'svg#chart: 1 texts below 10.5 px, the smallest {12 * 0.8 * 304 / 300:.2f} px: "budget"'
    line = only(checks.small_text(written('<section id="notes"><p style="font-size: 9px">fine print</p></section>')))
    assert line == 'section#notes: 1 texts below 10.5 px, the smallest 9.00 px: "fine print"'


def test_one_pass_finds_what_three_do(written):
    page = written(
        svg('<text x="10" y="50" font-size="9">budget</text><text x="20" y="50" font-size="9">policy</text><text x="298" y="9">out</text>')
    )
    alone = checks.overlapping_text(page) + checks.text_out_of_drawing(page) + checks.small_text(page)
    assert checks.text(page) == alone
    assert len(alone) == 3


def test_keyboard_unnamed(written):
    assert any("has no accessible name" in line for line in checks.keyboard(written('<button style="width: 30px; height: 30px"></button>')))


@pytest.mark.parametrize(
    "body",
    [
        '<button style="outline: none">Copy</button>',
        '<svg width="200" height="40"><a href="#top" style="outline: none"><text y="20">44.18</text></a></svg>',
    ],
)
def test_keyboard_focus_not_shown(written, body):
    assert "shows no focus" in only(checks.keyboard(written(body)))


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("<button>Copy</button>", "<style>button:focus-visible { outline: none; box-shadow: 0 0 0 3px blue }</style>"),
        (
            '<svg width="200" height="40"><a href="#top"><rect width="50" height="30"/><text y="20">44.18</text></a></svg>',
            "<style>a:focus-visible { outline: none } a:focus-visible rect { stroke: blue }</style>",
        ),
        ('<svg width="200" height="40"><a href="#top"><text y="20">44.18</text></a></svg>', ""),
        ('<a href="#top" style="position: absolute; left: -9999px" onfocus="this.style.left = 0">Skip</a>', ""),
    ],
)
def test_keyboard_focus_shown(written, body, head):
    assert checks.keyboard(written(body, head)) == []


def test_keyboard_not_visible(written):
    assert "is not visible" in only(checks.keyboard(written('<a href="#top" style="opacity: 0">44.18</a>')))
    assert any(
        "outside the viewport" in line
        for line in checks.keyboard(written('<a href="#top" style="position: fixed; left: -900px">44.18</a>'))
    )
    assert any(
        "behind" in line for line in checks.keyboard(written('<a href="#top">44.18</a><div style="position: fixed; inset: 0">over</div>'))
    )


def test_keyboard_trap(written):
    trap = """<button>One</button><button onkeydown="event.key === 'Tab' && event.preventDefault()">Two</button><button>Three</button>"""
    assert any('"Two"' in line and "comes back" in line for line in checks.keyboard(written(trap)))


def test_keyboard_trap_in_the_middle(written):
    many = [f"<button>{number}</button>" for number in range(200)]
    many[100] = many[100].replace(">", """ onkeydown="event.preventDefault()" style="outline: none">""", 1)
    found = checks.keyboard(written(" ".join(many)), sampled=1000)
    assert len(found) == 2
    assert "does not let the focus go" in found[0] + found[1]
    assert "shows no focus" in found[0] + found[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<h1>One</h1>", "0 visible main, not one"),
        ("<main><h1>One</h1></main><main>Two</main>", "2 visible main, not one"),
        ("<main>Words</main>", "0 visible h1, not one"),
        ("<main><h1>One</h1><h1>Two</h1></main>", "2 visible h1, not one"),
        ("<main><h1>One</h1><h3>Three</h3></main>", 'h3 "Three" follows h1'),
        ("<main><h1>One</h1><figure>A picture</figure></main>", "a figure without a name: <figure>"),
        ('<main><h1 id="a">One</h1><p id="a">Two</p></main>', 'id "a" stands 2 times'),
    ],
)
def test_structure(written, body, said):
    assert only(checks.structure(written(body))).startswith(said)


def test_figure_is_named_by_its_caption(written):
    assert checks.structure(written("<main><h1>One</h1><figure>A picture<figcaption>Hit rate</figcaption></figure></main>")) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="#nowhere">there</a>', "leads to #nowhere, which is not there"),
        ('<svg><a href="#nowhere"><text y="20">there</text></a></svg>', "leads to #nowhere, which is not there"),
        ('<a href="#">there</a>', "leads to #, which is not there"),
        ('<a href="missing.html#part">there</a>', "a link leads to missing.html#part, a file that is not there"),
    ],
)
def test_links(written, body, said):
    assert said in only(checks.links(written(body)))


def test_links_that_lead_somewhere(written):
    body = '<a href="#here%20now" id="here now">a</a> <a href="#n/sim.hit">b</a> <a href="#c/F1">c</a> <a href="page.html#x">d</a>'
    assert checks.links(written(body)) == []


def test_size(tmp_path):
    page = tmp_path / "page.html"
    page.write_bytes(b" " * 101)
    assert checks.size(page, most_bytes=101) == []
    assert only(checks.size(page, most_bytes=100)) == "page.html has 101 bytes, more than 100"


def test_screenshots_are_cut_and_whole(written, tmp_path):
    page = written('<div style="height: 4500px">high</div><p id="low" style="width: 100px; height: 50px">low</p>', width=360)
    whole = page.screenshots(tmp_path / "whole")
    assert [shot.name for shot in whole] == ["whole-01.png", "whole-02.png", "whole-03.png"]
    assert [png_size(shot) for shot in whole[:2]] == [(360, 2000)] * 2
    assert png_size(only(page.screenshots(tmp_path / "one", "#low"))) == (100, 50)
    assert page.pdf(tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def png_size(path):
    head = path.read_bytes()[16:24]
    return int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")


def test_report_is_bounded_and_empty_when_nothing_is_wrong():
    assert checks.report("page", []) == ""
    assert checks.report("page", ["a", "b", "c"], most=2) == "page: 3 found\na\nb\n... and 1 more"
