"""A page as a person sees it: opened in headless Chromium, on a desk and on a phone."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
DESK, PHONE = 1200, 375


def look_at(html: str, folder: Path) -> dict[int, dict]:
    """What the unchanged page shows in a frame of each width; skips where there is no browser.

    For each width: ``words`` that can be seen, ``overflow`` of the page beyond its frame in pixels,
    ``figures`` as [width, height], ``letters`` of figures as heights, ``cut`` texts that leave
    their figure, ``alts`` of the figures, and ``scripts``, the number of script elements.
    """
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    if subprocess.run([browser, "--version"], capture_output=True).returncode:
        pytest.skip(f"{browser} is there but does not start")
    text = json.dumps(html).replace("</", "<\\/").replace("<!--", "<\\!--")
    (folder / "frames.html").write_text(
        f"""<!doctype html><meta charset="utf-8"><body><script>
        const seen = {{}}, html = {text};
        for (const width of [{DESK}, {PHONE}]) {{
          const frame = document.createElement("iframe");
          frame.width = width; frame.height = 900; frame.srcdoc = html;
          frame.onload = () => {{
            const page = frame.contentDocument, box = (e) => e.getBoundingClientRect();
            const all = (what) => [...page.querySelectorAll(what)];
            seen[width] = {{
              words: page.body.innerText,
              overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
              figures: all("figure svg, figure img").map((e) => [box(e).width, box(e).height]),
              letters: all("svg text").map((e) => box(e).height),
              cut: all("svg text").filter((e) => {{
                const inner = box(e), outer = box(e.closest("svg"));
                return inner.right > outer.right + 2 || inner.left < outer.left - 2;
              }}).map((e) => e.textContent),
              alts: all("figure svg").map((e) => e.getAttribute("aria-label")),
              scripts: all("script").length,
            }};
            if (Object.keys(seen).length == 2) {{
              const out = document.createElement("pre");
              out.id = "seen"; out.textContent = JSON.stringify(seen); document.body.append(out);
            }}
          }};
          document.body.append(frame);
        }}
        </script>""",
        encoding="utf-8",
    )
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=10000", "--dump-dom", (folder / "frames.html").as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, encoding="utf-8")
    found = json.loads(unescape(re.search(r'<pre id="seen">(.*)</pre>', result.stdout, re.S)[1]))
    return {int(width): what for width, what in found.items()}
