"""The site in a headless Chromium, from the disk and from a server. Types questions into the page that plans, and compares
its answers with the command line. Runs axe-core on six pages, light and dark, and looks at their widths and weights.
./dev docs makes the site and runs this test. test_page.py --screenshots FOLDER writes pictures of the pages, too."""

import functools
import http.server
import importlib.util
import json
import pathlib
import sys
import tempfile
import threading
import unittest
import urllib.parse

import browser
import test_planner
import tool

SITE = test_planner.ROOT / "build" / "docs" / "site"
PAGES = ("index", "planner", "recipes", "python", "halos", "reference/python")
WIDTHS = {"phone": (360, 740), "desk": (1280, 900)}  # pixels
BYTES_MAX = 1_000_000  # of a page with all that it loads, without the planner
# Questions of test_planner that fill every field of the form, in each notation.
TYPED = [test_planner.QUESTIONS[at] for at in (0, 1, 4, 9, 14, 15, 16, 17)]
FIELDS = ("log", "mesh", "array", "source", "target", "machine", "peak_bytes_max")
# A line for each element that breaks a rule.
AXE = """axe.run({preload: false, resultTypes: ["violations"]}).then((result) => result.violations.flatMap((one) =>
    one.nodes.map((node) => `${one.id}: ${one.help}: ${node.target} ${node.html.slice(0, 200)} ${node.any.map(
        (why) => why.message)}`)))"""
SCREENSHOTS = []  # the folder that the command line names


def axe():
    """The source of axe-core, or None. The package in the Python index holds the file of npm's package."""
    spec = importlib.util.find_spec("axe_playwright_python")
    places = [pathlib.Path(folder) / "axe.min.js" for folder in (spec.submodule_search_locations if spec else [])]
    places.append(pathlib.Path("/usr/share/javascript/axe-core/axe.min.js"))
    return next((place.read_text(encoding="utf-8") for place in places if place.is_file()), None)


def address(page):
    return (SITE / "docs" / f"{page}.html").as_uri()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.show_as(*WIDTHS["desk"], "light")

    def assert_loaded(self, page):
        self.assertEqual((self.browser.failures, self.browser.messages), ([], []), page)

    def ask(self, fields):
        """Opens the page that plans anew and fills the form in."""
        self.browser.open(address("planner"))
        for name in FIELDS:
            if name in fields or name in ("mesh", "source", "target"):
                self.browser.type(f"#planner [name={name}]", fields.get(name, ""))
        for name in ("vocabulary", "objective"):
            chosen = f"document.querySelector('#planner [name={name}]')"
            self.browser.run(f"{chosen}.value = {json.dumps(fields.get(name, ''))}; "
                             f"{chosen}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    def assert_shown(self, text):
        """Waits until the page shows the text as its first block."""
        shown = self.browser.run(f"""new Promise((done) => {{
            const place = document.getElementById("planner-answer");
            const look = () => {{
                const block = place.querySelector("pre");
                if (block && block.textContent === {json.dumps(text)}) done(block.textContent);
            }};
            new MutationObserver(look).observe(place, {{childList: true, subtree: true, characterData: true}});
            setTimeout(() => done(place.innerText), 60000);
            look();
        }})""")
        self.assertEqual(shown, text)

    @unittest.skipUnless(tool.TOOL, "no tool is built, so its answers cannot be compared")
    def test_typed_questions_are_answered_as_on_the_command_line(self):
        for notation, fields in TYPED:
            with self.subTest(fields):
                self.ask(fields)
                asked = test_planner.arguments(notation, fields)
                self.assert_shown(tool.reshard("plan", *asked).out)
                drawn = tool.reshard("draw", "--svg", *asked)
                picture = self.browser.run("(document.querySelector('#planner-answer img') || {}).src")
                if drawn.code == 0:
                    self.assertEqual(urllib.parse.unquote(picture.split(",", 1)[1]), drawn.out)
                    self.assertGreater(self.browser.run("document.querySelector('#planner-answer img').decode().then("
                                                        "() => document.querySelector('#planner-answer img').naturalWidth)"), 0)
                self.assert_loaded("planner")

    @unittest.skipUnless(tool.TOOL, "no tool is built, so its answers cannot be compared")
    def test_an_address_holds_the_question(self):
        _, fields = test_planner.QUESTIONS[2]
        self.ask(fields)
        table = tool.reshard("plan", *test_planner.arguments(None, fields)).out
        self.assert_shown(table)
        sent = self.browser.run("location.href")
        self.browser.open(sent)
        self.assert_shown(table)

    @unittest.skipUnless(tool.TOOL, "no tool is built, so its answers cannot be compared")
    def test_a_pasted_log(self):
        self.ask({"log": test_planner.LOG})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.log"
            path.write_text(test_planner.LOG, encoding="utf-8")
            self.assert_shown(tool.reshard("explain", "--log", str(path)).out)

    def test_an_error_shows_its_place(self):
        self.ask({"mesh": "x=2", "source": "f32[8@z]", "target": "f32[8]"})
        self.browser.run("""new Promise((done) => { const look = () => {
            document.querySelector("#planner-answer pre.planner-error") ? done() : setTimeout(look, 20); }; look(); })""")
        shown = self.browser.run("document.querySelector('#planner-answer pre.planner-error').textContent")
        self.assertIn("f32[8@z]", shown)
        self.assertIn("^", shown)

    def test_pages_pass_axe(self):
        source = axe()
        if source is None:
            self.skipTest("no axe-core here; ./dev docs installs it where the package index is reached")
        for page in PAGES:
            for scheme in ("light", "dark"):
                with self.subTest(page, scheme=scheme):
                    self.browser.show_as(*WIDTHS["desk"], scheme)
                    self.browser.open(address(page))
                    self.browser.run(source + "; 0")
                    broken = self.browser.run(AXE)
                    self.assertEqual(broken, [], "\n".join(broken))

    def test_pages_fit_their_windows(self):
        for page in PAGES:
            for width, size in WIDTHS.items():
                with self.subTest(page, width=width):
                    self.browser.show_as(*size, "light")
                    self.browser.open(address(page))
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), size[0])
                    self.assertEqual(self.browser.run("innerWidth"), size[0])
                    self.assert_loaded(page)
                    for folder in SCREENSHOTS:
                        self.browser.screenshot(folder / f"{page.replace('/', '_')}_{width}.png")

    def test_pages_ask_no_server_and_are_small(self):
        for page in PAGES:
            with self.subTest(page):
                self.browser.open(address(page))
                files = {urllib.parse.urlsplit(one) for one in self.browser.requests if not one.startswith("data:")}
                self.assertEqual({one.scheme for one in files}, {"file"}, self.browser.requests)
                paths = [pathlib.Path(urllib.parse.unquote(one.path)) for one in files]
                weight = sum(path.stat().st_size for path in paths if path.name != "planner.js")
                self.assertLess(weight, BYTES_MAX, sorted((path.stat().st_size, path.name) for path in paths))

    def test_pages_work_under_a_path_of_a_server(self):
        serve = functools.partial(Quiet, directory=SITE.parents[1])
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                for page in PAGES:
                    with self.subTest(page):
                        self.browser.open(f"http://127.0.0.1:{server.server_port}/docs/site/docs/{page}.html")
                        self.assert_loaded(page)
            finally:
                server.shutdown()
                thread.join()


if __name__ == "__main__":
    if browser.found() is None:
        test_planner.skip("no Chromium here; Debian's package chromium-headless-shell has one")
    if not (SITE / "docs" / "planner.html").is_file() or not test_planner.PLANNER.is_file():
        test_planner.skip("the site is not made, or made without the planner; run ./dev docs")
    if test_planner.PLANNER.stat().st_mtime < test_planner.newest_source():
        test_planner.skip("the planner of the page is older than its sources; run ./dev docs")
    if "--screenshots" in sys.argv:
        folder = pathlib.Path(sys.argv.pop())
        sys.argv.pop()
        folder.mkdir(parents=True, exist_ok=True)
        SCREENSHOTS.append(folder)
    unittest.main(verbosity=1)
