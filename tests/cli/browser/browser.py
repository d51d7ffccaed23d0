"""A headless Chromium for tests: Browser().open(address) loads a page, and its methods look at the page and type into it.
The browser is driven over DevTools' pipe, so no driver is needed."""

import base64
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
SECONDS_MAX = 120  # for one answer of the browser


def found():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a browser, until `close`."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self._folder.name}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium's sandbox refuses root
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        self._process = subprocess.Popen(["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh", found(), *options],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._text, self._number, self._session = b"", 0, None
        self.requests, self.failures, self.messages = [], [], []  # of the page that was opened last
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(domain + ".enable")

    def close(self):
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def _message(self, end):
        """The next message of the browser: an answer or an event."""
        while b"\0" not in self._text:
            if not self._selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError(f"the browser gave no answer in {SECONDS_MAX} s")
            read = os.read(self._process.stdout.fileno(), 1 << 20)
            if not read:
                raise RuntimeError(f"the browser ended with {self._process.wait()}")
            self._text += read
        line, self._text = self._text.split(b"\0", 1)
        message = json.loads(line)
        given = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif message.get("method") == "Network.loadingFailed":
            self.failures.append(given["errorText"])
        elif message.get("method") == "Network.responseReceived" and given["response"]["status"] >= 400:
            self.failures.append(f"{given['response']['status']} {given['response']['url']}")
        elif message.get("method") == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(given["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.messages.append(given["entry"]["text"])
        return message

    def ask(self, method, **given):
        """The answer to one command of DevTools."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": given}
        if self._session:
            command["sessionId"] = self._session
        self._process.stdin.write(json.dumps(command).encode() + b"\0")
        self._process.stdin.flush()
        end = time.monotonic() + SECONDS_MAX
        while (message := self._message(end)).get("id") != self._number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def show_as(self, width, height, scheme):
        """The size of the window in pixels, and the color scheme that the reader prefers: light or dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        """Loads a page and everything that it names."""
        self.ask("Page.navigate", url="about:blank")  # an address that differs behind # only would not be loaded again
        self.run("new Promise((loaded) => document.readyState === 'complete' ? loaded() : onload = loaded)")
        self.requests, self.failures, self.messages = [], [], []
        failed = self.ask("Page.navigate", url=address).get("errorText")
        if failed:
            raise RuntimeError(f"{address}: {failed}")
        end = time.monotonic() + SECONDS_MAX
        while self.run("location.href !== 'about:blank' && document.readyState") != "complete":
            if time.monotonic() > end:
                raise TimeoutError(f"{address}: not loaded in {SECONDS_MAX} s")

    def run(self, script):
        """The value of an expression of JavaScript; if it is a promise, the value that it becomes."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def type(self, element, text):
        """Replaces the text of a field as a person does: selects it and types."""
        self.run(f"document.querySelector({json.dumps(element)}).select()")
        key = {"key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **key)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **key)
        self.ask("Input.insertText", text=text)

    def screenshot(self, path):
        """Writes what the window shows."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
