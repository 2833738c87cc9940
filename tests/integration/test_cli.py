"""The command line as a person meets it: help, completion, recipes, doctor."""
import json
import re
import shutil
import subprocess

import pytest

import harness

COMMANDS = [[], ["recipe"], ["recipe", "check"], ["recipe", "show"], ["recipe", "diff"], ["qualify"], ["runs"], ["runs", "list"],
            ["runs", "show"], ["runs", "reindex"], ["verify"], ["report"], ["doctor"], ["completion"]]
WITH_JSON = [["recipe", "check"], ["recipe", "show"], ["recipe", "diff"], ["qualify"], ["runs"], ["runs", "list"], ["runs", "show"],
             ["verify"], ["doctor"]]

@pytest.fixture
def anvil(tmp_path):
    anvil = harness.Anvil(tmp_path / "home", tmp_path / "runs")
    anvil.home.mkdir()
    return anvil


@pytest.fixture(scope="module")
def r16():
    found = sorted((harness.SOURCE / "recipes").glob("*r16*.toml"))
    assert len(found) == 2, f"expected the two r16 recipes, found {found}"
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(anvil, command):
    done = anvil.run(*command, "--help")
    assert done.code == 0 and done.err == "", done
    assert re.search(r"(?i)examples?:[\s\S]*\banvil " + " ".join(command), done.out), done


@pytest.mark.parametrize("command", WITH_JSON, ids=" ".join)
def test_json_is_offered(anvil, command):
    assert "--json" in anvil.run(*command, "--help").out


def test_version(anvil):
    done = anvil.run("--version")
    assert done.code == 0 and re.match(r"anvil \d+\.\d+\.\d+ \(build [0-9a-f]+", done.out), done


@pytest.mark.parametrize("shell, check", [("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_completion_scripts_parse(anvil, tmp_path, shell, check):
    done = anvil.run("completion", shell)
    assert done.code == 0 and "qualify" in done.out, done
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / f"anvil.{shell}"
    script.write_text(done.out)
    parsed = subprocess.run([*check, str(script)], capture_output=True, text=True)
    assert parsed.returncode == 0, parsed


def test_bash_completion_completes(anvil, tmp_path):
    script = tmp_path / "anvil.bash"
    script.write_text(anvil.run("completion", "bash").out)
    done = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=(anvil recipe d); COMP_CWORD=2; _anvil; echo ${{COMPREPLY[@]}}"],
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["diff"], done


def test_shipped_recipes_are_valid(anvil):
    recipes = sorted((harness.SOURCE / "recipes").glob("*.toml"))
    assert recipes
    done = anvil.run("recipe", "check", *recipes, "--json")
    assert done.code == 0, done


def test_show_names_the_digest_and_the_exact_command(anvil):
    done = anvil.run("recipe", "show", harness.SOURCE / "recipes/gemma-3-270m.toml", "--json")
    assert done.code == 0, done
    shown = done.json
    assert re.fullmatch(r"[0-9a-f]{64}", shown["digest"]), shown
    argv = json.dumps(shown)
    for flag in ('"-c"', '"-np"', '"--alias"', '"--port"'):
        assert flag in argv, (flag, shown)


def test_the_digest_ignores_what_identifies_nothing(anvil, tmp_path):
    source = (harness.SOURCE / "recipes/gemma-3-270m.toml").read_text()
    digest = anvil.run("recipe", "show", harness.SOURCE / "recipes/gemma-3-270m.toml", "--json").json["digest"]
    for extra in (harness.SOURCE / "recipes").iterdir():  # templates lie beside the recipes
        if extra.is_file() and extra.suffix != ".toml":
            shutil.copy(extra, tmp_path)
    for folder in (harness.SOURCE / "recipes").iterdir():
        if folder.is_dir():
            shutil.copytree(folder, tmp_path / folder.name)
    commented = tmp_path / "commented.toml"
    commented.write_text("# a comment\n" + source.replace(" = ", "   =  ").replace("\n[", "\n\n# another\n["))
    assert anvil.run("recipe", "show", commented, "--json").json["digest"] == digest
    renamed = tmp_path / "renamed.toml"
    renamed.write_text(re.sub(r'(?m)^name *=.*$', 'name = "another-name"', source, count=1))
    assert anvil.run("recipe", "show", renamed, "--json").json["digest"] == digest
    changed = tmp_path / "changed.toml"
    changed.write_text(re.sub(r"(?m)^(max_sequences *= *)\d+", r"\g<1>7", source))
    assert anvil.run("recipe", "show", changed, "--json").json["digest"] != digest


def test_diff_of_the_two_r16_recipes(anvil, r16):
    done = anvil.run("recipe", "diff", *r16, "--json")
    assert done.code in (0, 1), done
    diff = done.json
    assert set(diff) >= {"changed", "consequences", "unchanged"}, diff
    variables = [group["variable"] for group in diff["changed"]]
    assert "speculation" in variables, variables
    for group in diff["changed"]:
        for field in group["fields"]:
            assert set(field) == {"path", "a", "b"} and field["a"] != field["b"], field
    assert "weights" in diff["unchanged"] and not set(variables) & set(diff["unchanged"]), diff
    text = anvil.run("recipe", "diff", *r16)
    assert "speculation" in text.out, text


def test_diff_of_a_recipe_with_itself(anvil, r16):
    done = anvil.run("recipe", "diff", r16[0], r16[0], "--json")
    assert done.code == 0 and done.json["changed"] == [], done


def test_doctor(anvil):
    done = anvil.run("doctor", "--json")
    assert done.code in (0, 1, 3), done
    text = anvil.run("doctor")
    assert re.search(r"\b(OK|WARN|FAIL)\b", text.out), text
    assert "llama" in done.out.lower() and "memory" in done.out.lower(), done
    assert "GPU-" not in done.out  # no UUID is ever printed
