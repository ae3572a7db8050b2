"""Check the built pages: they ask the network for nothing, and links between them lead somewhere.

python docs/check_site.py docs/_build/html
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

# Whatever a browser fetches by itself: scripts, styles, fonts, pictures.
FETCHED = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="((?:https?:)?//[^"]+)"')
STYLES = re.compile(r'<link\b[^>]*\bhref="((?:https?:)?//[^"]+)"')
IN_CSS = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")
LINK = re.compile(r'(?:href|src)="([^"#?]+)')
ELSEWHERE = ("http:", "https:", "//", "mailto:", "data:", "javascript:")


def find_faults(site):
    """Return the number of links looked at, and a text for each fault."""
    faults, n_links = [], 0
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    for page in pages:
        text, name = page.read_text(encoding="utf-8"), page.relative_to(site)
        faults += [f"{name} loads {one}" for one in FETCHED.findall(text) + STYLES.findall(text)]
        for link in LINK.findall(text):
            if not link.startswith(ELSEWHERE):
                n_links += 1
                if not (page.parent / unquote(link)).exists():
                    faults.append(f"{name} links to {link}, which is not there")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        faults += [f"{style.relative_to(site)} loads {one}" for one in IN_CSS.findall(text)]
    if not pages:
        faults.append(f"{site} has no pages")
    return n_links, faults


if __name__ == "__main__":
    n_links, faults = find_faults(Path(sys.argv[1]))
    if faults:
        sys.exit("\n".join(faults))
    print(f"{n_links} links lead somewhere; nothing is loaded from the network.")
