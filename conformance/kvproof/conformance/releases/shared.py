"""The packages that all releases share, installed once into the environment that runs kvproof."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata, resources

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import pip

_FIRST = "torch"


def pinned() -> dict[str, str]:
    """Package name to exact version, in the order of ``requirements.txt``."""
    text = resources.files(__package__).joinpath("requirements.txt").read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return dict(_name_and_version(line) for line in lines if line)


def missing() -> list[str]:
    """The shared packages that are not here in any version.

    One that is here in another version is left alone: it may serve something else of the user's.
    Whether a release works with it, only its import can tell.
    """
    return [name for name in pinned() if _version(name) is None]


def differing() -> dict[str, tuple[str, str]]:
    """Package name to (version here, pinned version), where the two differ."""
    here = {name: (_version(name), version) for name, version in pinned().items()}
    return {
        name: (found, version)
        for name, (found, version) in here.items()
        if found is not None and found.partition("+")[0] != version
    }


def install(names: Sequence[str], report: pip.Report) -> None:
    """Install these shared packages at their pinned versions.

    Raises:
        UsageError: pip failed.
    """
    pins = pinned()
    try:
        # Torch goes first and with its own dependencies, which depend on the machine. The others go
        # without: the list is complete, and a resolver would add GPU packages that nothing imports.
        if _FIRST in names:
            with pip.requirements_file([f"{n}=={v}" for n, v in pins.items()]) as constraints:
                pip.install(["--constraint", constraints, f"{_FIRST}=={pins[_FIRST]}"], report)
        others = [f"{name}=={pins[name]}" for name in names if name != _FIRST]
        if others:
            with pip.requirements_file(others) as requirements:
                pip.install(["--no-deps", "--requirement", requirements], report)
    except pip.PipError as error:
        raise UsageError(f"the packages that vLLM needs were not installed: {error}") from None


def _name_and_version(line: str) -> tuple[str, str]:
    name, _, version = line.partition("==")
    return name, version


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
