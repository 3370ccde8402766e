"""The reports of `vmbake report` work in a browser, without requests.

Debian's Chromium opens the report of the baked node, one of a root file system with malicious names, and a comparison. It is queried for what it
shows: that the search finds paths, that the table draws only what is in view, that every part can be reached by keys, that text is legible in
both colour schemes, that no request leaves and the console stays empty. Pictures are left in target/report.
"""

import json
import os
import re
import subprocess

import pytest

from harness.browser import Browser, installed
from harness.paths import TARGET
from harness.report import case
from harness.run import must

# Names that would like to be markup, script, another line or another text.
HOSTILE = [
    b"</script><script>window.pwned=1</script>", b"<img src=x onerror=window.pwned=1>", b"\" onfocus=\"window.pwned=1", b"' autofocus x='",
    b"a\nb", b"\xff\xfe", b"\xe2\x80\xaegpj.exe", b"{{ 7 * 7 }}", b"&lt;i&gt;", b"<!--", b"\\u003cscript",
]
# How text and what is behind it differ: WCAG 2.2, contrast ratio. SVG's text has its colour in `fill`.
CONTRAST = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)" && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const add = (what, one, two) => {
    const [high, low] = [light(one), light(two)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), what]);
  };
  for (const element of document.querySelectorAll("h1, h2, p, a, dt, dd, summary, th, td, li, label, input, select, button, .row span")) {
    if (element.closest("svg") || !element.getClientRects().length) continue;
    add(element.tagName, getComputedStyle(element).color, behind(element));
  }
  for (const text of document.querySelectorAll("#treemap text")) {
    const rect = text.parentElement.querySelector("rect");
    add("treemap", getComputedStyle(text).fill, getComputedStyle(rect).fill);
  }
  return found.sort((a, b) => a[0] - b[0]);
})()"""

# Clicks every rectangle of a folder: how many there are, how many paths they list together, and which list nothing, or say something else.
RECTANGLES = """(() => {
  const tiles = [...document.querySelectorAll("#treemap .tile[data-folder]")];
  const wrong = [];
  let sum = 0;
  for (const tile of tiles) {
    tile.dispatchEvent(new MouseEvent("click", {cancelable: true}));
    const shown = document.getElementById("count").textContent;
    const count = Number(shown.split(" ")[0]);
    sum += count;
    const said = tile.getAttribute("aria-label").replace(/: [^:]*$/, "");
    if (!(count > 0) || !shown.endsWith(" paths of " + said)) wrong.push([said, shown]);
  }
  return {tiles: tiles.length, sum, wrong};
})()"""


@pytest.fixture(scope="module")
def chromium():
    """Installed on demand: it is too large for everybody's setup."""
    if installed():
        return
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*root, "apt-get", "-qq", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
    if subprocess.run(apt, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL).returncode or not installed():
        pytest.skip("Debian's Chromium cannot be installed")


@pytest.fixture
def browser(chromium):
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def work():
    folder = TARGET / "report"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def image(release, name):
    return release / f"{name}.qcow2"


@pytest.fixture(scope="module")
def page(vmbake, image, work):
    must(vmbake, "report", image, "--out", work / "node.html", "--force")
    return work / "node.html"


@pytest.fixture(scope="module")
def paths(vmbake, image):
    entries = map(json.loads, must(vmbake, "ls", image, "/", "-R", "--json").splitlines())
    return ["/"] + [entry.get("escaped_path", entry["path"]) for entry in entries]


def hostile_image(folder):
    """A file system whose names are hostile, made by mke2fs."""
    tree, image = os.path.join(os.fsencode(folder), b"hostile"), folder / "hostile.raw"
    os.makedirs(os.path.join(tree, b"etc"), exist_ok=True)
    for index, name in enumerate(HOSTILE):
        # A slash is not part of a name: a closing tag becomes directories, as in a tree.
        path = os.path.join(tree, *name.split(b"/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x" * 5000 * (index + 1))
    with open(os.path.join(tree, b"etc/os-release"), "w") as file:
        file.write("ID=debian\nIMAGE_ID='</title><script>window.pwned=1</script>'\n")
    with open(os.path.join(tree, b"etc/passwd"), "w") as file:
        file.write("<script>window.pwned=1</script>:x:0:0::/:\"><img src=x onerror=window.pwned=1>\n")
    image.unlink(missing_ok=True)
    must("mke2fs", "-q", "-t", "ext4", "-d", os.fsdecode(tree), image, "16M")
    return image


def quiet(browser, name):
    """Only the page was requested, and the console is empty."""
    others = [url for url in browser.requests if not url.startswith("file:")]
    case(f"{name}: no request leaves", len(browser.requests) == 1 and not others, browser.requests)
    case(f"{name}: the console stays empty", not browser.said and not browser.thrown, [browser.said, browser.thrown])


def rows(browser):
    return browser.run("document.querySelectorAll('#room .row').length")


def test_report_finds(browser, page, paths):
    """The search finds a path by parts of it in any case and order, and shows the count."""
    browser.open(page)
    count = "document.getElementById('count').textContent"
    shown = f"{len(paths)} of {len(paths)} paths"
    case("all paths are counted", browser.run(count) == shown, [browser.run(count), shown])
    first = rows(browser)
    case("only rows in view are drawn", 0 < first < 100 < 10_000 < len(paths), first)
    browser.run("document.getElementById('search').focus()")
    browser.type("RUNC sbin")
    expected = ["/usr/bin/runc -> ../sbin/runc", "/usr/sbin/runc"]
    found = browser.run("[...document.querySelectorAll('#room .row span:first-child')].map((cell) => cell.textContent)")
    case("the search finds a path", found == expected, [found, expected])
    browser.run("document.getElementById('reset').click()")
    browser.run("new Promise((done) => setTimeout(() => done(0), 50))")
    case("and shows all again", browser.run(count) == shown, browser.run(count))
    browser.run("document.getElementById('table').scrollTop = 1e9")
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
    last = browser.run("[...document.querySelectorAll('#room .row')].pop().firstChild.textContent")
    case("the last row comes into view", last.split(" -> ")[0] == paths[-1] and rows(browser) < 100, [last, paths[-1]])
    quiet(browser, "node, searched")


def test_report_keys(browser, page, paths):
    """From the top by Tab alone, through the treemap by arrows, to the table by Enter, and down it."""
    browser.open(page)
    active = "(document.activeElement.id || document.activeElement.getAttribute('class') || document.activeElement.tagName)"
    met = []
    for _ in range(200):
        browser.key("Tab")
        met.append(browser.run(active))
        if met[-1] == "table":
            break
    wanted = ["skip", "tile", "wide", "search", "layer", "reset", "table"]
    case("Tab reaches every part", all(part in met for part in wanted), met)
    case("the treemap is one stop", met.count("tile") == 1, met)
    case("focus is seen", browser.run("getComputedStyle(document.getElementById('table')).outlineStyle") == "solid")
    browser.key("PageDown")
    browser.run("new Promise((done) => setTimeout(() => done(0), 400))")
    case("the table scrolls by keys", browser.run("document.getElementById('table').scrollTop") > 100)
    browser.run("document.querySelector('#treemap .tile[tabindex=\"0\"]').focus()")
    label = "document.activeElement.getAttribute('aria-label')"
    seen = [browser.run(label)]
    for name in ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight"]:
        browser.key(name)
        seen.append(browser.run(label))
    case("arrows move in the treemap", len(set(seen)) > 2 and all(seen), seen)
    case("and it says where", browser.run("document.getElementById('tile-text').textContent") == seen[-1], seen)
    browser.run("document.querySelector('#treemap .tile[aria-label*=\"runc, /usr/sbin\"]').focus()")
    browser.key("Enter")
    found = browser.run("[...document.querySelectorAll('#room .row')].map((row) => row.firstChild.textContent)")
    case("Enter lists the paths of a rectangle", found == ["/usr/sbin/runc"] and browser.run(active) == "table", found)
    count = browser.run("document.getElementById('count').textContent")
    case("and says of which", count.endswith("paths of debian-containerd, runc, /usr/sbin"), count)
    found = browser.run(RECTANGLES)
    case("every rectangle lists paths, and says of what", found["tiles"] > 100 and not found["wrong"], found)
    case("and no path is in two of them", 1000 < found["sum"] <= len(paths), found)
    quiet(browser, "node, used")


def legible(browser, scheme):
    worst = browser.run(CONTRAST)
    case(f"{scheme}: text has a contrast of 4.5 or more", len(worst) > 100 and worst[0][0] >= 4.5, worst[:5])
    return browser.run("getComputedStyle(document.body).backgroundColor")


def test_report_is_drawn(browser, page, work):
    browser.open(page)
    quiet(browser, "node")
    browser.picture(work / "light.png")
    light = legible(browser, "light")
    browser.open(page, scheme="dark")
    browser.picture(work / "dark.png")
    dark = legible(browser, "dark")
    case("both schemes differ", (light, dark) == ("rgb(255, 255, 255)", "rgb(15, 19, 24)"), [light, dark])
    browser.open(page, width=390, height=800)
    case("a narrow window has no sideways scrolling", browser.run("document.documentElement.scrollWidth") <= 390, browser.run("document.documentElement.scrollWidth"))
    browser.picture(work / "narrow.png", whole=False)


def test_report_policy(browser, page):
    """The policy of the page lets no request out and no other script run, even for a script that is in it."""
    browser.open(page)
    tried = browser.run("fetch('http://127.0.0.1:9/').then(() => 'went', (error) => 'refused')")
    # A refused connection and a refused request look alike: the policy says which.
    said = " ".join(browser.said)
    case("the policy stops requests", tried == "refused" and "Content Security Policy" in said and "127.0.0.1:9" in said, [tried, said])
    browser.run("document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.pwned = 1'})); 0")
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=http://127.0.0.1:9/x onerror=\"window.pwned = 2\">')")
    browser.run("new Promise((done) => setTimeout(() => done(0), 200))")
    case("and other scripts", browser.run("typeof window.pwned") == "undefined", browser.run("String(window.pwned)"))


def test_report_of_a_comparison(browser, vmbake, baked, work):
    compared = work / "compared.html"
    must(vmbake, "report", baked, "--compare", hostile_image(work), "--out", compared, "--force")
    browser.open(compared)
    quiet(browser, "compared")
    browser.run("document.getElementById('changed').click()")
    marked = browser.run("(() => { const rows = JSON.parse(document.getElementById('data').textContent).rows; return [rows.filter((row) => row[8]).length, rows.length]; })()")
    count = browser.run("document.getElementById('count').textContent")
    case("only what changed is listed on demand", 0 < marked[0] < marked[1] and count == f"{marked[0]} of {marked[1]} paths", [count, marked])
    browser.picture(work / "compared.png")


def test_report_of_hostile_names(browser, vmbake, work):
    image, page = hostile_image(work), work / "hostile.html"
    must(vmbake, "report", image, "--out", page, "--force")
    browser.open(page)
    quiet(browser, "hostile names")
    state = browser.run("({pwned: typeof window.pwned, scripts: document.scripts.length, images: document.images.length, title: document.title})")
    case("hostile names run nothing", (state["pwned"], state["scripts"], state["images"]) == ("undefined", 2, 0), state)
    case("the title is text", state["title"] == "</title><script>window.pwned=1</script>", state)
    tree = os.fsencode(work / "hostile")
    expected = {os.path.join(folder, name)[len(tree):] for folder, folders, files in os.walk(tree) for name in folders + files}
    found = browser.run("JSON.parse(document.getElementById('data').textContent).rows.map((row) => row[0])")
    # Each \\xNN is a byte.
    found = {re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes([int(byte[1], 16)]), path.encode()) for path in found} - {b"/"}
    case("every hostile name is a row, byte by byte", found == expected, [found ^ expected])
    browser.run("document.getElementById('search').focus()")
    browser.type("window.pwned")
    case("and is found as it is", rows(browser) >= 3, rows(browser))
    browser.picture(work / "hostile.png")
