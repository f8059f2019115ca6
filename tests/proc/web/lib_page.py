"""The browser of lib_browser.sh: headless Chromium, driven by what it is told on stdin, a line at a time.

Each line is a verb and its words; the answer is a line, "ok" or "FAILED: why". It looks at a page as a person would:
what it says, what can be clicked, and whether it stays where it is.
"""
import base64
import http.server
import os
import sys
import threading
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PATIENCE_S = 60
# With ten thousand ranks the page is to paint first and to update in less than these parts of what as many bare rows take.
PAINT_OF_BARE = 1
UPDATE_OF_BARE = 0.15
SHOTS = os.environ.get("WEB_SHOTS")


class Nothing(http.server.BaseHTTPRequestHandler):
    """A page of another site; empty, unless it is given one."""

    page = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_):
        pass


class Page:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_page_load_timeout(PATIENCE_S)
        self.size(1400, "light")

    def size(self, width, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.metrics(int(width), 1000)

    def metrics(self, width, height):
        self.width = width
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def script(self, text, *words):
        return self.driver.execute_script(text, *words)

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for {what}; the page says: {self.text()[:1500]!r}")

    def do_open(self, url):
        self.driver.get(url)
        # What was there stays there: nothing reloads while the page changes.
        self.script("window.kept = document.querySelector('h1'); window.canvas = document.querySelector('canvas')")

    def do_says(self, *words):
        text = " ".join(words)
        self.wait(f"{text!r}", lambda: text in self.text())

    def do_no_longer(self, *words):
        text = " ".join(words)
        self.wait(f"no {text!r}", lambda: text not in self.text())

    def do_live(self):
        self.do_says("live")

    def do_same_page(self):
        assert self.script("return window.kept && window.kept.isConnected"), "the page was loaded again"
        assert self.script("return !window.canvas || window.canvas.isConnected"), "the grid was made again"

    def step(self):
        return int(self.driver.find_element(By.CSS_SELECTOR, "[data-fact=step]").text.replace(",", ""))

    def do_steps_grow(self):
        first = self.step()
        self.wait("more steps", lambda: self.step() > first)

    def do_size(self, width, scheme):
        self.size(width, scheme)

    def do_fits(self):
        """Nothing is wider than the window but what scrolls by itself."""
        wide = self.script("return document.documentElement.scrollWidth")
        assert wide <= self.width, f"{wide} px in a window of {self.width}"

    def do_shot(self, name):
        if not SHOTS:
            return
        height = self.script("return document.documentElement.scrollHeight")
        width = self.width
        self.metrics(width, min(height, 2600))
        time.sleep(0.3)  # a picture for people, not a condition
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        with open(os.path.join(SHOTS, name + ".png"), "wb") as file:
            file.write(base64.b64decode(picture))
        self.metrics(width, 1000)

    def do_grid(self, states):
        """The letters of the grid, as the page has drawn them."""
        self.wait(f"the grid {states}", lambda: self.script("return heat && heat.data && heat.data.states") == states)

    def do_keyboard(self):
        """From the head of the page by Tab alone: the link to the content, then what can be done, each with a name."""
        self.script("document.activeElement.blur(); window.scrollTo(0, 0)")
        body = self.driver.find_element(By.TAG_NAME, "body")
        seen = []
        for _ in range(60):
            body.send_keys(Keys.TAB)
            active = self.driver.switch_to.active_element
            name = active.accessible_name
            seen.append((active.tag_name, name))
            if active.tag_name == "body":
                break
            assert name, f"a {active.tag_name} without a name: {active.get_attribute('outerHTML')[:200]}"
            if active.tag_name == "canvas":
                active.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
                said = self.driver.find_element(By.ID, "heat-says").text
                assert said.startswith("Rank 1 on"), said
            if name == "Lag":
                active.send_keys(Keys.ENTER)
                assert active.get_attribute("aria-pressed") == "true"
        names = [name for _, name in seen]
        assert names[0] == "Skip to the content" and "Lag" in names and any(tag == "canvas" for tag, _ in seen), seen

    def do_headings(self):
        """One h1, headings in order, tables with heads, and no id twice."""
        wrong = self.script(
            """
            const wrong = [];
            if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
            for (const table of document.querySelectorAll("table"))
              if (!table.querySelector("thead th[scope=col]") || !table.querySelector("tbody th[scope=row]"))
                wrong.push("a table without heads");
            const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
            for (const id of ids) if (ids.filter((other) => other === id).length > 1) wrong.push(`id ${id} twice`);
            if (document.documentElement.lang !== "en" || !document.title) wrong.push("no language or title");
            for (const section of document.querySelectorAll("section"))
              if (!document.getElementById(section.getAttribute("aria-labelledby"))) wrong.push("a section without a name");
            return wrong;
            """
        )
        assert not wrong, wrong

    def do_contrast(self):
        """Text against what is behind it: 4.5 to 1."""
        poor = self.script(
            """
            const luminance = (colour) => {
              const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
                const value = part / 255;
                return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
              });
              return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
            };
            const behind = (node) => {
              for (; node; node = node.parentElement) {
                const colour = getComputedStyle(node).backgroundColor;
                if (!colour.endsWith(", 0)")) return colour;
              }
              return "rgb(255, 255, 255)";
            };
            const poor = [];
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
              const node = walker.currentNode.parentElement;
              if (!walker.currentNode.nodeValue.trim() || !node.checkVisibility() || node.closest("svg")) continue;
              const one = luminance(getComputedStyle(node).color), other = luminance(behind(node));
              const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
              if (ratio < 4.5) poor.push(`${walker.currentNode.nodeValue.trim()}: ${ratio.toFixed(2)}`);
            }
            return poor;
            """
        )
        assert not poor, poor

    def do_axe(self):
        """Nothing that axe-core calls moderate or worse."""
        if not os.environ.get("AXE"):
            return "not tried"
        with open(os.environ["AXE"], encoding="utf-8") as file:
            self.script(file.read())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((said) => done(said.violations), (error) => done(String(error)))"
        )
        assert isinstance(found, list), found
        poor = [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] != "minor"]
        assert not poor, poor

    def do_spark(self):
        """The line of steps a second grows while one looks."""
        points = "return document.querySelector('.facts .spark polyline').getAttribute('points').split(' ').length"
        self.wait("a line of three marks", lambda: self.script(points) >= 3)

    def do_quiet(self):
        """The browser has nothing to complain about: no error, nothing that the policy stopped."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        said = [text for text in said if "/stream" not in text and "503" not in text and "ERR_CONNECTION" not in text]
        assert not said, said

    def window(self):
        """The time line's window and whole, as the server drew them."""
        return self.script(
            "const { from, to, first, last } = document.querySelector('.line svg').dataset;"
            "return [from, to, first, last].map(Number)"
        )

    def zoomed(self, what, condition):
        """Until the window is as wanted, in the picture and in the address."""

        def is_there():
            begin, end, first, last = self.window()
            asked = self.script("return location.search")
            return asked == ("" if (begin, end) == (first, last) else f"?from={begin}&to={end}") and condition(begin, end, first, last)

        self.wait(f"{what}, from {self.window()}", is_there)
        return self.window()

    def mouse(self, kind, x, y, **more):
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def do_zoom(self):
        """In, out, earlier and later by links and keys; a piece by dragging; at the pointer by the wheel with Ctrl."""
        link = lambda name: self.driver.find_element(By.XPATH, f"//nav[@class='zoom']/a[text()='{name}']")
        self.script("document.querySelector('.line svg').scrollIntoView({ block: 'center', behavior: 'instant' })")
        begin, end, first, last = self.zoomed("the whole", lambda begin, end, first, last: (begin, end) == (first, last))
        is_half = lambda begin, end, first, last: 0.4 < (end - begin) / (last - first) < 0.51  # the launch goes on
        bar = "return document.querySelector('.line .mark').getBoundingClientRect().width"
        narrow = self.script(bar)
        link("Zoom in").click()
        half = self.zoomed("a half", is_half)
        assert 0.2 < (half[0] - first) / (half[3] - first) < 0.26, f"not the middle: {half}"
        assert self.script(bar) > 1.5 * narrow, "the round's bar is as narrow as before"
        link("Later").click()
        self.zoomed("later", lambda *window: window[0] > half[0] and is_half(*window))
        link("Zoom out").send_keys(Keys.ENTER)
        self.zoomed("the whole by Enter", lambda begin, end, first, last: (begin, end) == (first, last))
        assert self.script("return document.activeElement.textContent") == "Zoom out", "the link lost the focus"

        self.driver.switch_to.active_element.send_keys("+")
        self.zoomed("a half by a key", is_half)
        self.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
        self.zoomed("the first half", lambda *window: window[0] == window[2] and is_half(*window))
        self.driver.switch_to.active_element.send_keys("0")
        _, _, first, last = self.zoomed("the whole by a key", lambda begin, end, first, last: (begin, end) == (first, last))

        left, top, width = self.script("const box = document.querySelector('.line svg').getBoundingClientRect(); return [box.x, box.y, box.width]")
        x = lambda share: left + width * share
        self.mouse("mousePressed", x(0.6), top + 36, button="left", clickCount=1)
        for share in (0.7, 0.8):
            self.mouse("mouseMoved", x(share), top + 36, button="left", buttons=1)
        assert self.script("return document.querySelector('.line .pick').getBoundingClientRect().width") > 0.15 * width
        self.mouse("mouseReleased", x(0.8), top + 36, button="left", clickCount=1)
        whole = last - first
        near = lambda have, want: abs(have - want) < whole * 0.06
        dragged = self.zoomed("what was dragged over", lambda begin, end, *_: near(begin, first + 0.6 * whole) and near(end, first + 0.8 * whole))
        assert not self.script("return document.querySelector('.line .pick')"), "the mark of the drag stays"

        self.mouse("mouseWheel", x(0.25), top + 36, deltaX=0, deltaY=-120, modifiers=2)
        closer = self.zoomed("less by the wheel", lambda begin, end, *_: end - begin < dragged[1] - dragged[0])
        begin, end, *_ = closer
        assert near(begin + 0.25 * (end - begin), dragged[0] + 0.25 * (dragged[1] - dragged[0])), "the wheel moved what is under the pointer"
        stands = self.script("return window.scrollY")
        self.mouse("mouseWheel", x(0.25), top + 36, deltaX=0, deltaY=-120)
        self.wait("the page to move by the wheel alone", lambda: self.script("return window.scrollY") < stands)
        assert self.zoomed("as much as before", lambda *_: True)[:2] == closer[:2], "the wheel without Ctrl zooms"

    BARE_ROW = "<tr><th>{0}</th><td>node-{0}</td><td>training</td><td>59</td><td>1</td><td>2 s ago</td></tr>"

    def first_paint(self, url):
        self.driver.get(url)
        painted = "const paint = performance.getEntriesByName('first-contentful-paint')[0]; return paint && paint.startTime"
        self.wait("the first paint", lambda: self.script(painted))
        return self.script(painted)

    def update(self):
        """Main thread of the next update that changes all that can change, and of a grid that is painted again."""
        return self.driver.execute_async_script(
            """
            const done = arguments[0];
            const until = (is) => new Promise((go) => { const look = () => (is() ? go() : setTimeout(look, 10)); look(); });
            (async () => {
              await until(() => heat && heat.data && heat.layout);
              for (const cell of document.querySelectorAll("#main td, #main .facts dd")) cell.textContent = "?";
              heat.painted = [];
              const before = document.body.dataset.updates;
              let began = performance.now();
              heat.draw();
              const grid = performance.now() - began;
              refresh();
              await until(() => document.body.dataset.updates !== before);
              done(Number(document.body.dataset.updateMs) + grid);
            })();
            """
        )

    def build_rows(self, rows):
        """What this browser needs to build and lay out a bare table of so many rows."""
        return self.script(
            """
            const box = document.createElement("div");
            const began = performance.now();
            box.innerHTML = `<table>${arguments[0]}</table>`;
            document.body.append(box);
            box.offsetHeight;
            const passed = performance.now() - began;
            box.remove();
            return passed;
            """,
            rows,
        )

    def do_quick(self, count, url):
        """The first paint beside that of a bare page of as many rows, and an update beside the making of these rows.

        The best of five, taken in turns, so that what else the machine does meets both.
        """
        rows = "".join(self.BARE_ROW.format(rank) for rank in range(int(count)))
        Nothing.page = f"<!doctype html><title>bare</title><table>{rows}</table>".encode()
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        paints, bare_paints, updates, builds = [], [], [], []
        for _ in range(5):
            bare_paints.append(self.first_paint(f"http://127.0.0.1:{site.server_port}/"))
            builds.append(self.build_rows(rows))
            paints.append(self.first_paint(url))
            updates.append(self.update())
        site.shutdown()
        paint, bare, update, build = min(paints), min(bare_paints), min(updates), min(builds)
        figures = f"first paint {paint:.0f} ms, of bare rows {bare:.0f} ms; update {update:.1f} ms, bare rows {build:.1f} ms"
        assert paint < PAINT_OF_BARE * bare, figures
        assert update < UPDATE_OF_BARE * build, figures
        return figures

    def do_no_buttons(self):
        assert not self.script("return document.querySelector('#orders button')"), "a tab without the secret has buttons"

    def do_forge(self, order):
        """Another site's page sends what it can: a request whose answer it may not see, one with a header, and a form."""
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        self.driver.get(f"http://127.0.0.1:{site.server_port}/")
        self.driver.execute_async_script(
            """
            const [order, done] = arguments;
            const send = (options) => fetch(order, { method: "POST", ...options }).catch(() => {});
            send({ mode: "no-cors" }).then(() => send({ headers: { "X-Muster-Orders": "x" } })).then(done);
            """,
            order,
        )
        self.script(
            """
            const form = Object.assign(document.createElement("form"), { method: "POST", action: arguments[0] });
            document.body.append(form);
            form.submit();
            """,
            order,
        )
        self.do_says("sent by another site's page")
        site.shutdown()
        self.driver.get_log("browser")  # it complains of each

    def do_order(self, *words):
        """Presses the button of that name, fills in NAME=VALUE and confirms."""
        values = dict(word.split("=", 1) for word in words if "=" in word)
        name = " ".join(word for word in words if "=" not in word)
        for dialog in self.driver.find_elements(By.TAG_NAME, "dialog"):
            dialog.find_element(By.XPATH, ".//button[text()='Cancel']").click()
        self.driver.find_element(By.XPATH, f"//*[@id='orders']/button[text()='{name}']").click()
        for field, value in values.items():
            self.driver.find_element(By.CSS_SELECTOR, f"dialog [name={field}]").send_keys(value)
        self.driver.find_element(By.CSS_SELECTOR, "dialog .go").click()

    def do_refused(self, *words):
        text = " ".join(words)
        wrong = self.driver.find_element(By.CSS_SELECTOR, "dialog .wrong")
        self.wait(f"the refusal {text!r}", lambda: text in wrong.text)
        self.driver.get_log("browser")  # of the status 403

    def do_windows(self, *urls):
        """All are seen at once, and each one follows. A browser has six connections to one place."""
        steps = {}
        for url in urls:
            self.driver.switch_to.new_window("window")
            self.driver.get(url)
            self.do_live()
            steps[self.driver.current_window_handle] = self.step()
        for window, step in steps.items():
            self.driver.switch_to.window(window)
            assert not self.script("return document.hidden"), "a window is hidden"
            self.wait(f"more steps than {step}", lambda least=step: self.step() > least)
        return f"{len(steps)} windows"

    def do_close_windows(self):
        first, *others = self.driver.window_handles
        for window in others:
            self.driver.switch_to.window(window)
            self.driver.close()
        self.driver.switch_to.window(first)

    def do_click(self, *words):
        self.driver.find_element(By.LINK_TEXT, " ".join(words)).click()

    def do_end(self):
        self.driver.quit()


def main():
    page = Page()
    print("ok", flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            said = getattr(page, "do_" + verb)(*words)
            print("ok" if said is None else f"ok {said}", flush=True)
        except Exception as error:  # whatever it is, the script is to hear it
            print("FAILED:", " ".join(str(error).split())[:2000], flush=True)


main()
