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
SHOTS = os.environ.get("WEB_SHOTS")


class Nothing(http.server.BaseHTTPRequestHandler):
    """An empty page of another site."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

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

    def do_figures(self):
        figures = self.script(
            """
            const paint = performance.getEntriesByName("first-contentful-paint")[0];
            return `first paint ${paint ? Math.round(paint.startTime) : "?"} ms, `
              + `update ${document.body.dataset.updateMs} ms, grid ${document.body.dataset.heatMs} ms`;
            """
        )
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
