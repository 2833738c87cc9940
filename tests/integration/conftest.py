import json
import os
import pathlib
import shutil

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


@pytest.fixture(scope="session")
def qualified(engine_home, tmp_path_factory):
    """The main job, once: the shipped recipe, policy and suite on the real engine and the real model."""
    folder = tmp_path_factory.mktemp("qualified")
    # A home of its own, so that the user's is not written to, with the user's engine and model in it.
    (folder / "home").mkdir()
    for name in ("bin", "engines", "models"):
        (folder / "home" / name).symlink_to(engine_home / name)
    anvil = harness.Anvil(folder / "home", folder / "runs")
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
