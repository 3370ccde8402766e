"""Debian's headless Chromium, controlled over a pipe with the DevTools protocol: no port, no module, and no downloads."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Chromium's own requests, of which none may mix with those of a page.
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--no-default-browser-check"]
# Typed text and key code; Enter has a character.
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "ArrowLeft": (37, ""), "ArrowRight": (39, ""), "ArrowUp": (38, ""), "ArrowDown": (40, ""), "PageDown": (34, ""), "End": (35, "")}
# Longest wait for any answer, in seconds: a browser that hangs is a failure, not a test that never ends.
LONGEST = 120


def installed():
    return shutil.which("chromium")


class Browser:
    """One browser with one page at a time. `requests`, `said` and `thrown` are the page's actions since it was opened."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="vmbake-chromium-", ignore_cleanup_errors=True)
        commands, self.writer = os.pipe()
        self.reader, answers = os.pipe()
        # As root there is no sandbox; the pages are ours.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [installed(), "--headless", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", *sandbox, *QUIET, "about:blank"]
        # The browser reads commands from descriptor 3, and answers on 4.
        wired = ["/bin/bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "chromium", *command]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(wired, pass_fds=(commands, answers), stdin=quiet, stdout=quiet, stderr=quiet)
        os.close(commands)
        os.close(answers)
        self.buffer, self.number, self.session = b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.ask(f"{domain}.enable")
        self.forget()

    def forget(self):
        self.requests, self.said, self.thrown, self.loaded = [], [], [], False

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.reader], [], [], LONGEST)[0]:
                raise RuntimeError("chromium does not answer")
            piece = os.read(self.reader, 1 << 20)
            if not piece:
                raise RuntimeError("chromium has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        found = json.loads(text)
        self.note(found.get("method"), found.get("params", {}))
        return found

    def note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(str(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.thrown.append(params["exceptionDetails"].get("exception", {}).get("description", params["exceptionDetails"]["text"]))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def ask(self, method, **params):
        self.number += 1
        number, end = self.number, time.monotonic() + LONGEST
        sent = {"id": number, "method": method, "params": params} | ({"sessionId": self.session} if self.session else {})
        os.write(self.writer, json.dumps(sent).encode() + b"\0")
        while time.monotonic() < end:
            found = self.message()
            if found.get("id") == number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
        raise RuntimeError(f"{method}: no answer")

    def open(self, path, scheme="light", width=1280, height=900):
        """Opens a file, and returns the seconds until it was drawn."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.forget()
        start = time.monotonic()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not self.loaded:
            self.message()
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(0), 0)))")
        return time.monotonic() - start

    def run(self, expression):
        """The value of an expression in the page; promises are awaited."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", found["exceptionDetails"]))
        return found["result"].get("value")

    def key(self, name):
        code, text = KEYS[name]
        both = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **both, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **both)

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def picture(self, path, whole=True):
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
