"""The programs that make the evidence: verify, sweep, geometry, figures. Each step continues where it was stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List

from quoka_capture.errors import CaptureError, Refused, UsageError, require

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs/paper"
SUFFIX = {"chunk": "", "whole": "_whole"}  # of geometry files, by what the mean query is taken over


class StepFailed(CaptureError):
    """A program ended with this exit code, after its own message."""

    def __init__(self, command: List[str], code: int):
        super().__init__(f"{Path(command[0]).name} ended with {code} ({' '.join(command)}); its message is above."
                         " After a remedy, the same command continues")
        self.exit_code = code if code > 0 else 75


@dataclass
class Work:
    """Where things are, and how much is to be done."""

    captures: List[Path]
    out: Path
    flags: Dict[str, List[str]] = field(default_factory=dict)  # of single sweeps

    @property
    def configs(self) -> List[str]:
        return sorted(path.stem for path in CONFIGS.glob("*.toml"))

    @property
    def drawn(self) -> Path:
        """The capture whose geometry is drawn."""
        return next((path for path in self.captures if "needle" in path.stem), self.captures[0])

    def results(self, name: str) -> Path:
        return self.out / f"{name}.h5"

    def geometry(self, capture: Path, scope: str) -> Path:
        return self.out / "geometry" / f"{capture.stem}{SUFFIX[scope]}.h5"

    @property
    def figures(self) -> Path:
        return self.out / "figures"


def program(name: str) -> str:
    """From the variable that the tests use (QUOKA_SWEEP, ...), or the release build."""
    path = os.environ.get(name.upper().replace("-", "_"), str(ROOT / "build/release/apps" / name))
    require(Path(path).is_file(), UsageError, f"the program {path} does not exist; run ./scripts/quickstart.sh")
    return path


def run(command: List[str]):
    """Shows what the program printed only if it failed; its errors and warnings always."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise StepFailed(command, done.returncode)


def timed(work: Work, name: str, step, *arguments):
    start = time.monotonic()
    step(work, *arguments)
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


def verify(work: Work):
    """Each capture against its own stored output; verdicts stay beside the captures."""
    for capture in work.captures:
        require(capture.is_file(), UsageError, f"the capture {capture} does not exist; see scripts/make_study.sh")
        if not capture.with_name(capture.name + ".verified.json").exists():
            run([program("quoka-capture"), "verify", str(capture)])


def sweep(work: Work, name: str):
    config = CONFIGS / f"{name}.toml"
    require(config.is_file(), UsageError, f"the configuration {config} does not exist")
    run([program("quoka-sweep"), "run", str(config), "--capture", *map(str, work.captures), "--out",
         str(work.results(name)), "--quiet", *work.flags.get(name, [])])


def geometry(work: Work):
    work.geometry(work.captures[0], "chunk").parent.mkdir(exist_ok=True)
    for capture in work.captures:
        for scope, size in (("chunk", "128"), ("whole", "whole")):
            out = work.geometry(capture, scope)
            if not out.exists():  # written under another name until it is whole
                run([program("quoka-geometry"), "run", str(capture), "--budget", "512", "--chunk_size", size, "--out",
                     str(out), "--quiet"])


def draw(work: Work):
    """Figures of every sweep, and of the geometry of one capture. A stamp says which file's figures are complete."""
    files = [*(work.results(name) for name in work.configs), work.geometry(work.drawn, "chunk")]
    missing = [path for path in files if not path.exists()]
    require(not missing, Refused, f"{', '.join(map(str, missing))} do not exist; run the steps before this one again")
    work.figures.mkdir(exist_ok=True)
    stamps = {path: work.figures / f"{path.stem}.complete" for path in files}
    old = [path for path, stamp in stamps.items()
           if not stamp.exists() or stamp.stat().st_mtime < path.stat().st_mtime]
    if old:
        run([sys.executable, str(ROOT / "scripts/plot_paper.py"), *map(str, old), "--out", str(work.figures),
             "--formats", "png"])
    for path in old:
        stamps[path].touch()


def all_steps(work: Work):
    work.out.mkdir(parents=True, exist_ok=True)
    timed(work, "verify", verify)
    for name in work.configs:
        timed(work, f"sweep {name}", sweep, name)
    timed(work, "geometry", geometry)
    timed(work, "figures", draw)
