#!/usr/bin/env python3
"""Checks that every #include obeys the layers of docs/developing.md: python3 check_layers.py [ROOT]."""

import re
import sys
from pathlib import Path

# A room may include itself and these rooms.
ROOMS = {
    "core": "",
    "hdf5": "core",
    "capture": "core hdf5 attention",
    "attention": "core",
    "geometry": "core",
    "selection": "core geometry attention",
    "prefill": "core attention geometry",
    "metrics": "core",
    "replay": "core attention geometry selection metrics",
    "results": "core hdf5 metrics",
    "study": "core hdf5 attention geometry selection replay results",
    "sweep": "core hdf5 capture attention geometry selection prefill metrics replay results",
    "check": "core metrics results",
    "apps": "core hdf5 capture attention geometry selection prefill metrics replay results study sweep check",
}
# Headers of a library, the places that may include it, and whether one file per place may.
LIBRARIES = [
    (r"hdf5(_hl)?\.h|H5\w+\.h", {"hdf5"}, False),
    (r"CLI/.*", {"apps"}, False),
    (r"toml\+\+/.*", {"sweep"}, True),
    (r"nlohmann/.*", {"capture", "sweep", "check"}, True),
    (r"spdlog/.*", {"sweep", "apps"}, False),
    (r"openssl/.*", {"core"}, True),
    (r"(unsupported/)?Eigen/.*", {"core", "attention", "geometry", "selection", "metrics", "replay"}, False),
    (r"catch2/.*", set(), False),  # only tests/support/catch.hpp, which is not looked at
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def violations(root):
    """One line per #include in src/quoka and apps that breaks a rule."""
    users = {}  # (library, place) -> first file that includes it
    files = [*(root / "src/quoka").rglob("*.[hc]pp"), *(root / "apps").rglob("*.[hc]pp")]
    for path in sorted(files):
        name = path.relative_to(root)
        place = name.parts[0] if name.parts[0] == "apps" else name.parts[2]
        if place not in ROOMS:
            yield f"{name}: {place} is not a room (add it to the table in scripts/check_layers.py)"
            continue
        for quote, header in INCLUDE.findall(path.read_text()):
            parts = header.split("/")
            if parts[0] == "quoka":
                if parts[1] != place and parts[1] not in ROOMS[place].split():
                    yield f"{name}: {place} may not include {header}"
            elif quote == '"' and place != "apps":
                yield f'{name}: write "quoka/<room>/{parts[-1]}", not "{header}"'
            for library, places, once in LIBRARIES:
                if not re.fullmatch(library, header):
                    continue
                if place not in places:
                    yield f"{name}: {place} may not include <{header}>"
                elif once and users.setdefault((library, place), name) != name:
                    yield f"{name}: <{header}> is included by {users[library, place]} already (one file)"


if __name__ == "__main__":
    top = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found = list(violations(top))
    print("\n".join(found) or "all includes obey the layers")
    sys.exit(bool(found))
