import json
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.request

import pytest

import harness


def data_dir():
    home = os.environ.get("ANVIL_HOME")
    if home:
        return pathlib.Path(home)
    return pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share") / "anvil"


@pytest.fixture(scope="session")
def engine_home():
    """Where scripts/setup-engine put the engine and the model."""
    home = data_dir()
    server = shutil.which("llama-server") or home / "bin" / "llama-server"
    model = home / "models" / "gemma-3-270m-q4_k_m.gguf"
    if not os.path.exists(server) or not model.exists():
        pytest.fail(f"the engine or the model is missing ({server}, {model}): run scripts/setup-engine")
    return home


def home_with_engine(engine_home, folder):
    """A home of its own, so that the user's is not written to, with the user's engine and model in it."""
    (folder / "home").mkdir()
    for name in ("bin", "engines", "models"):
        (folder / "home" / name).symlink_to(engine_home / name)
    return harness.Anvil(folder / "home", folder / "runs")


@pytest.fixture(scope="session")
def qualified(engine_home, tmp_path_factory):
    """The main job, once: the shipped recipe, policy and suite on the real engine and the real model."""
    anvil = home_with_engine(engine_home, tmp_path_factory.mktemp("qualified"))
    source = harness.SOURCE
    done = anvil.run("qualify", source / "recipes/gemma-3-270m.toml", "--policy", source / "policies/quickstart.toml", "--suite",
                     source / "suites/quickstart.toml", "--runs-dir", anvil.runs, "--json", timeout=600)
    yield anvil, done
    anvil.kill_rest()


@pytest.fixture(scope="session")
def run(qualified):
    _, done = qualified
    directory = json.loads(done.out)["run_dir"]
    assert directory, done
    return pathlib.Path(directory)


@pytest.fixture(scope="module")
def measuring(engine_home, tmp_path_factory):
    """anvil with the real engine at hand, for the commands that only measure."""
    anvil = home_with_engine(engine_home, tmp_path_factory.mktemp("measuring"))
    yield anvil
    anvil.kill_rest()


@pytest.fixture(scope="module")
def server(measuring):
    """The real llama.cpp server, started by somebody else than anvil; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = shutil.which("llama-server") or str(data_dir() / "bin" / "llama-server")
    process = subprocess.Popen([program, "-m", str(data_dir() / "models" / "gemma-3-270m-q4_k_m.gguf"), "-c", "4096", "-np", "2", "-t", "1",
                                "--host", "127.0.0.1", "--port", str(port), "--alias", "gemma", "--metrics"],
                               env=measuring.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready():
        assert process.poll() is None, f"llama-server ended with {process.returncode}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    harness.wait_until(ready, "llama-server is ready", 120)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)
