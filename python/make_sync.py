"""Writes aenv_client/_sync from aenv_client/_async. With --check it fails if they differ, and writes nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPLACED = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r" async for ", " for "),
    (r"\bawait ", ""),
    (r"`async with`", "`with`"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\basyncio\b", "time"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_lines)\b", r"\1"),
]
package = Path(__file__).parent / "aenv_client"


def to_sync(source: str) -> str:
    for pattern, replacement in REPLACED:
        source = re.sub(pattern, replacement, source)
    return f"# Generated from _async by make_sync.py.\n{source}" if source else source


def main() -> None:
    stale = []
    for origin in sorted((package / "_async").glob("*.py")):
        copy = package / "_sync" / origin.name
        text = to_sync(origin.read_text())
        if copy.exists() and copy.read_text() == text:
            continue
        stale.append(str(copy.relative_to(package.parent)))
        if "--check" not in sys.argv:
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text)
    if "--check" in sys.argv and stale:
        sys.exit(f"run python make_sync.py: {', '.join(stale)} differ from _async")
    print('"equal"' if not stale else f"wrote {len(stale)} files")


main()
