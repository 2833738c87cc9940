import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402


@pytest.fixture
def case(tmp_path):
    """A small qualification against the fault engine. Whatever a failing test leaves running is killed."""
    case = harness.Case(tmp_path)
    yield case
    case.anvil.kill_rest()
