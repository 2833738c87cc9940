"""Files that a person wrote badly: refused before anything is created, with every mistake at its place."""
import re

import pytest

POSITION = re.compile(r"recipe\.toml:\d+:\d+: ")


def refused(case, done, *needles, code=2):
    assert done.code == code, done
    answer = done.json
    assert answer["run"] is None and answer["decision"] is None and answer["failed_step"], done
    for needle in needles:
        assert re.search(needle, "\n".join(answer["reasons"])), (needle, done)
    assert case.anvil.run_dirs() == []
    case.nothing_left()


def check(case, *arguments):
    return case.anvil.run("recipe", "check", case.folder / "recipe.toml", *arguments)


def test_a_good_recipe_is_accepted(case):
    case.write()
    done = check(case)
    assert done.code == 0, done


def test_missing(case):
    case.write()
    (case.folder / "recipe.toml").unlink()
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml", r"(?i)no such file|not found|does not exist")


def test_directory(case):
    case.write()
    (case.folder / "recipe.toml").unlink()
    (case.folder / "recipe.toml").mkdir()
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml", r"(?i)directory|folder")


@pytest.mark.parametrize("which", ["policy", "suite"])
def test_missing_policy_or_suite(case, which):
    case.write()
    (case.folder / f"{which}.toml").unlink()
    refused(case, case.anvil.run(*case.command()), rf"{which}\.toml")


def test_not_utf8(case):
    case.write()
    path = case.folder / "recipe.toml"
    path.write_bytes(path.read_bytes().replace(b'name = "fault"', b'name = "f\xff\xfe"', 1))
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml", r"(?i)utf-?8")


def test_binary(case):
    case.write()
    (case.folder / "recipe.toml").write_bytes(bytes(range(256)) * 64)
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml")


def test_50_megabytes(case):
    case.write()
    with open(case.folder / "recipe.toml", "ab") as file:
        file.write(b"# filling\n" * 5_000_000)
    refused(case, case.anvil.run(*case.command(), timeout=20), r"recipe\.toml", r"(?i)large|big|MiB|bytes")


def test_syntax_error(case):
    case.write()
    (case.folder / "recipe.toml").write_text("schema = \"anvil/recipe/v1\"\nname = \n")
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml:2:")


def test_duplicate_keys(case):
    case.write()
    path = case.folder / "recipe.toml"
    path.write_text(path.read_text().replace('name = "fault"', 'name = "fault"\nname = "again"', 1))
    refused(case, case.anvil.run(*case.command()), r"recipe\.toml:\d+", r"name")


def test_wrong_types_everywhere_are_reported_at_once(case):
    wrong = {"serving.context_tokens": "2048", "serving.max_sequences": 2.5, "serving.prefix_cache": "yes",
             "hardware.gpus": "none", "model.repo": 7, "model.dtype.dense": 8, "engine.kind": ["vllm"],
             "launch.program": "python3", "launch.port": "any", "launch.stop_grace_s": True}
    case.write(recipe=wrong)
    done = check(case, "--json")
    assert done.code == 2, done
    text = done.out
    for key in wrong:
        assert key in text, (key, done)
    plain = check(case)
    assert plain.code == 2 and len(POSITION.findall(plain.out + plain.err)) >= len(wrong), plain
    refused(case, case.anvil.run(*case.command()), *(re.escape(key) for key in wrong))


def test_ranges_and_units(case):
    case.write(recipe={"serving.context_tokens": 0, "launch.port": 70000, "serving.memory_utilisation": 90, "hardware.threads": -1})
    refused(case, case.anvil.run(*case.command()), "serving.context_tokens", "launch.port", "serving.memory_utilisation", "hardware.threads")


def test_unknown_keys_get_a_suggestion(case):
    case.write(recipe={"serving.context_token": 4096, "modle": {"repo": "x"}})
    refused(case, case.anvil.run(*case.command()), r"context_tokens", r"\bmodel\b")


def test_one_word_for_all_weights_is_refused(case):
    case.write(recipe={"model.dtype": "fp8"})
    refused(case, case.anvil.run(*case.command()), r"model\.dtype", r"(?i)component|expert|attention")


def test_a_raw_flag_that_contradicts_a_typed_field(case):
    case.write(recipe={"launch.extra_args": ["--ctx-size", "512"]})
    refused(case, case.anvil.run(*case.command()), r"launch\.extra_args", r"serving\.context_tokens")


def test_secrets_are_references(case):
    case.write(recipe={"launch.secrets": {"HF_TOKEN": "hf_1234567890abcdef"}})
    done = case.anvil.run(*case.command())
    refused(case, done, r"launch\.secrets", r"env:")


def test_a_missing_secret_stops_before_the_engine(case):
    done = case.qualify(recipe={"launch.api_key": "env:ANVIL_TEST_ABSENT"})
    assert done.code != 0 and "ANVIL_TEST_ABSENT" in done.out, done
    case.nothing_left()


def test_policy_mistakes(case):
    case.write(policy={"gate": [{"id": "a", "metric": "lanes[*].nonsense..x", "op": "~", "threshold": 1, "because": "b"}]})
    done = case.anvil.run(*case.command())
    refused(case, done, r"policy\.toml:\d+:\d+: ")


@pytest.mark.parametrize("arguments, needle", [
    (["qualfy"], "qualify"),
    (["qualify", "--polcy", "x"], "--policy"),
    (["recipe", "chek"], "check"),
    (["verify"], "RUN_DIR"),
    ([], "(?i)subcommand|--help"),
])
def test_command_line_mistakes(case, arguments, needle):
    done = case.anvil.run(*arguments)
    assert done.code == 2 and re.search(needle, done.err) and done.out == "", done


def test_verify_and_show_of_something_else(case):
    for command in (["verify", case.folder / "nowhere"], ["verify", case.folder], ["runs", "show", "nowhere"],
                    ["report", case.folder / "nowhere"]):
        done = case.anvil.run(*command)
        assert done.code in (1, 2, 3) and done.err and "internal" not in done.err, (command, done)


def test_stdout_is_full(case):
    case.write()
    with open("/dev/full", "w") as full:
        import subprocess
        import harness
        done = subprocess.run([harness.anvil_bin(), "recipe", "show", str(case.folder / "recipe.toml")], stdout=full,
                              stderr=subprocess.PIPE, text=True, env=case.anvil.env)
    assert done.returncode == 3, done
