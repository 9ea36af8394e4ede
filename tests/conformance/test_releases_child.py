"""Child processes of a release: what they see, what they pass on, how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvproof.conformance.errors import UsageError
from kvproof.conformance.releases import child_environment, locate, run_in
from kvproof.conformance.releases.child import run_command_in


@pytest.fixture(autouse=True)
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed release 1.2.3 whose import never ends, once it has said that it began."""
    monkeypatch.setenv("KVPROOF_CACHE", str(tmp_path))
    package = tmp_path / "releases" / "1.2.3" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"
    )
    return package.parent


def test_the_release_comes_first_on_the_path(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    environment = child_environment("1.2.3")
    assert environment["PYTHONPATH"] == f"{release}{os.pathsep}/somewhere"
    assert environment["KVPROOF_RELEASE"] == "1.2.3"
    assert environment["PYTHONHASHSEED"] == "0"
    assert "KVPROOF_RELEASE" not in os.environ


def test_a_release_that_is_not_there_names_the_command_that_installs_it() -> None:
    for ask in (locate, child_environment):
        with pytest.raises(UsageError, match=r"run `kvproof releases add 1\.2\.4`"):
            ask("1.2.4")
    with pytest.raises(UsageError, match="not a release"):
        locate("..")


def test_output_and_exit_code_are_the_child_s(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_in("1.2.3", ["--version"]) == 0
    assert run_in("1.2.3", ["frob"]) == 2
    out, err = capfd.readouterr()
    assert out == "kvproof 0.1.0\n"
    assert err == "kvproof: no such command 'frob'\n"


def test_a_command_finds_the_release_and_this_python(
    release: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_ENABLE_V1_MULTIPROCESSING", raising=False)
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    monkeypatch.setenv("PATH", os.defpath)
    told = "PYTHONPATH", "KVPROOF_RELEASE", "VLLM_NO_USAGE_STATS", "VLLM_ENABLE_V1_MULTIPROCESSING"
    code = f"import os, sys; print(sys.executable, *map(os.environ.get, {told})); sys.exit(3)"
    assert run_command_in("1.2.3", ["python", "-c", code]) == 3
    executable, path, *others = capfd.readouterr().out.split()
    assert Path(executable).parent == Path(sys.executable).parent
    assert path.split(os.pathsep)[0] == str(release)
    assert others == ["1.2.3", "0", "None"]


def test_a_command_of_the_release_runs_with_this_python_whoever_installed_it(
    release: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = release / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text("#!/nowhere/python\nimport sys\nprint(sys.executable, *sys.argv[1:])\n")
    assert run_command_in("1.2.3", ["vllm", "serve", "--port", "1"]) == 0
    assert capfd.readouterr().out == f"{sys.executable} serve --port 1\n"


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="there is no command 'no-such-command' to run"):
        run_command_in("1.2.3", ["no-such-command"])
    with pytest.raises(UsageError, match=r"run `kvproof releases add 1\.2\.4`"):
        run_command_in("1.2.4", ["python"])


@pytest.mark.parametrize("whole_group", [True, False], ids=["from a terminal", "parent alone"])
def test_an_interrupt_ends_parent_and_child_with_one_line(
    tmp_path: Path, whole_group: bool
) -> None:
    command = [sys.executable, "-m", "kvproof.conformance.cli"]
    command += ["record", "--target", "vllm:1.2.3", "--out", str(tmp_path / "t.jsonl")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs this in the background has its children ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "importing\n"
        if whole_group:
            os.killpg(parent.pid, signal.SIGINT)
        else:
            parent.send_signal(signal.SIGINT)
        out, err = parent.communicate(timeout=30)
    assert (parent.returncode, out, err) == (2, "", "kvproof: interrupted\n")


def test_a_termination_is_passed_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvproof.conformance.cli"]
    command += ["record", "--target", "vllm:1.2.3", "--out", str(tmp_path / "t.jsonl")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "importing\n"
        parent.terminate()
        parent.communicate(timeout=30)  # the pipe closes only when the child is gone as well
    assert parent.returncode == 128 + signal.SIGTERM
