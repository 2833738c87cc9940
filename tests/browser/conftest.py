"""Renders sample runs with the built tools and opens a browser for the tests.

ANVIL_BUILD names the build folder (default: the first of build/dev, build/report, build/release that holds the tools);
ANVIL_REPORT may name a report.html of a real run, which is then tested as well.
"""

import os
import pathlib
import subprocess

import pytest

from devtools import Browser, find_chromium

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ["full", "gpu", "rejected", "incomplete", "hostile", "bench", "troubled"]
CAMPAIGNS = ["effect", "aa", "exploratory", "hostile"]
KINDS = RUNS + [f"campaign-{kind}" for kind in CAMPAIGNS]


def tool(name):
    folders = [os.environ["ANVIL_BUILD"]] if "ANVIL_BUILD" in os.environ else ["build/dev", "build/asan"]
    for folder in folders:
        path = ROOT / folder / "src" / "report" / name
        if path.exists():
            return path
    pytest.fail(f"{name} is not built: cmake --build build/dev --target anvil_sample_run anvil_render_report")


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Rendered pages by kind."""
    folder = tmp_path_factory.mktemp("reports")
    out = {}
    for kind in KINDS:
        run, page = folder / kind, folder / f"{kind}.html"
        words = kind.split("-", 1) if kind.startswith("campaign-") else [kind]
        subprocess.run([tool("anvil_sample_run"), run, *words], check=True)
        subprocess.run([tool("anvil_render_report"), run, "html", page], check=True)
        out[kind] = page
    if real := os.environ.get("ANVIL_REPORT"):
        out["real"] = pathlib.Path(real).resolve()
    return out


@pytest.fixture(scope="session")
def browser():
    path = find_chromium()
    if path is None:
        pytest.skip("chromium is not installed (Debian package: chromium)")
    with Browser(path) as started:
        yield started


@pytest.fixture
def page(browser):
    made = browser.page()
    yield made
    made.close()


def pytest_generate_tests(metafunc):
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", KINDS + (["real"] if "ANVIL_REPORT" in os.environ else []))
