"""Mends: a kept finding of class *missed* comes from the lines that its mend replaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.monitor.finding import MISSED, Finding
from kvproof.conformance.releases.child import child_environment
from kvproof.conformance.releases.folders import installed
from kvproof.conformance.releases.mended import Edit, edited, read

ROOT = Path(__file__).resolve().parents[2] / "conformance"
MENDS = ROOT / "mends"
HISTORIES = ROOT / "histories"

PLAY = """
import sys
from pathlib import Path
from kvproof.conformance.releases import mended
mends = mended.read(Path(sys.argv[1]))
mended.install([mend for name, mend in mends.items() if name != "used-ids"])
from kvproof.conformance.engines.vllm import VllmTarget
from kvproof.conformance.fuzz import replay
target = VllmTarget()
for history in map(Path, sys.argv[2:]):
    for finding in replay.replay(history, target):
        print(history.name, finding.signature(), sep=": ")
"""


def test_lines_are_replaced_inserted_and_removed() -> None:
    source = "a\nb\nc\nd\n"
    edits = [Edit("m", 2, 2, "B\nB\n"), Edit("m", 4, 3, "new\n"), Edit("m", 1, 1, "")]
    assert edited(source, edits) == "B\nB\nc\nnew\nd\n"
    assert edited(source, []) == source


def test_a_file_that_holds_no_mends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mends.toml"
    with pytest.raises(UsageError, match=r"mends\.toml: cannot be read: No such file"):
        read(path)
    path.write_text("[[mend]]\nname = 1\n")
    with pytest.raises(UsageError, match=r"mends\.toml: no mends: "):
        read(path)


UNMENDED = {
    "0.32.0": {
        "e1-judge-answer-local.history.json",
        "e3-judge-chunk-window-extended-ahead.history.json",
    }
}
"""Losses that no mend takes away whole; docs/economy.md says of each why."""


@pytest.mark.vllm
@pytest.mark.parametrize("release", sorted(path.stem for path in MENDS.glob("*.toml")))
def test_no_kept_loss_is_left_on_the_mended_release(release: str) -> None:
    """Of class *missed*, where no id is used again: two lives in one table are not mended so."""
    if release not in installed():
        pytest.skip(f"vLLM {release} is not installed: kvproof releases add {release}")
    histories: dict[Path, str] = {}
    for path in sorted((HISTORIES / release).glob("*.finding.json")):
        finding = msgspec.json.decode(path.read_bytes(), type=Finding)
        if finding.severity == MISSED and finding.explained_by != "P13":
            history = path.with_name(path.name.replace(".finding.json", ".history.json"))
            histories[history] = str(finding.signature())
    assert len(histories) > 20
    command = [sys.executable, "-c", PLAY, str(MENDS / f"{release}.toml"), *map(str, histories)]
    played = subprocess.run(
        command, env=child_environment(release), stdout=subprocess.PIPE, check=True, text=True
    )
    found = set(played.stdout.splitlines())
    known = {f"{path.name}: {name}" for path, name in histories.items()}
    assert {line.partition(":")[0] for line in found & known} == UNMENDED.get(release, set())
