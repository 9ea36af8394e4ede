"""The packages that the releases share are pinned once, and the project's own pins agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import pip, shared

ROOT = Path(__file__).parents[2]


def test_every_shared_package_is_pinned_exactly() -> None:
    pins = shared.pinned()
    assert next(iter(pins)) == "torch"
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())


def own_pins() -> dict[str, str]:
    """What pyproject.toml pins, all extras together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(r for extra in extras.values() for r in extra)]
    return dict(r.split("==") for r in requirements if not r.startswith("kvproof["))


def constraint_pins() -> dict[str, str]:
    """What constraints.txt pins, the file that it includes left out."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and line[0] not in "#-")


def test_one_package_has_one_pin() -> None:
    own, constraints, pins = own_pins(), constraint_pins(), shared.pinned()
    assert not constraints.keys() & pins.keys()
    everywhere = {**pins, **constraints}
    assert {name: everywhere[name] for name in own if name != "vllm"} == {
        name: version for name, version in own.items() if name != "vllm"
    }


def test_the_constraints_include_the_shared_pins() -> None:
    text = (ROOT / "constraints.txt").read_text()
    included = re.search(r"^-c (\S+)$", text, re.MULTILINE)
    assert included is not None
    assert (ROOT / included[1]).samefile(Path(shared.__file__).with_name("requirements.txt"))


def test_what_is_here_in_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"torch": "2.13.0+cpu", "numpy": "1.0"}
    monkeypatch.setattr(shared, "_version", here.get)
    assert "torch" not in shared.missing()
    assert "numpy" not in shared.missing()
    assert "transformers" in shared.missing()
    assert shared.differing() == {"numpy": ("1.0", shared.pinned()["numpy"])}


def test_torch_goes_first_and_alone_with_its_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def note(arguments: list[str], _report: pip.Report) -> None:
        calls.append(arguments)

    monkeypatch.setattr(pip, "install", note)
    shared.install(["numpy", "torch", "regex"], lambda _doing, _done, _total: None)
    first, second = calls
    assert first[0] == "--constraint"
    assert first[2:] == [f"torch=={shared.pinned()['torch']}"]
    assert second[:2] == ["--no-deps", "--requirement"]


def test_a_failing_pip_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(shared, "pinned", lambda: {"no-such-package-anywhere": "1"})
    with pytest.raises(UsageError, match="No matching distribution found"):
        shared.install(["no-such-package-anywhere"], lambda _doing, _done, _total: None)
