"""Model files that are not what the recipe says: found before the engine starts."""


def stopped_before_launch(case, done, *needles):
    run = case.explained(done, failed_step="preflight", decision="rejected")
    said = "\n".join(done.json["reasons"]) + str(done.json["error"])
    for needle in needles:
        assert needle in said, (needle, done)
    assert not (run / "engine.log").exists() or (run / "engine.log").stat().st_size == 0
    return run


def test_absent(case):
    case.write()
    case.model.unlink()
    done = case.anvil.run(*case.command())
    stopped_before_launch(case, done, "model.gguf")


def test_truncated(case):
    case.write()
    case.model.write_bytes(case.model.read_bytes()[:-5])
    done = case.anvil.run(*case.command())
    stopped_before_launch(case, done, "model.gguf", str(case.model.stat().st_size))


def test_wrong_hash(case):
    case.write()
    data = bytearray(case.model.read_bytes())
    data[-1] ^= 1
    case.model.write_bytes(data)
    done = case.anvil.run(*case.command())
    stopped_before_launch(case, done, "model.gguf", "SHA-256")


def test_a_changed_file_is_not_taken_from_the_hash_memory(case):
    assert case.qualify().code == 0
    stat = case.model.stat()
    data = bytearray(case.model.read_bytes())
    data[-1] ^= 1
    case.model.write_bytes(data)
    import os
    os.utime(case.model, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = case.anvil.run(*case.command())
    stopped_before_launch(case, done, "SHA-256")


def test_not_a_gguf_file(case):
    case.model.write_bytes(b"<html>not found</html>" + b" " * 200)
    import hashlib
    data = case.model.read_bytes()
    artifact = [{"file": "model.gguf", "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "kind": "weights"}]
    done = case.qualify(recipe={"model.artifact": artifact})
    stopped_before_launch(case, done, "model.gguf", "GGUF")


def test_a_folder_in_its_place(case):
    case.write()
    case.model.unlink()
    case.model.mkdir()
    done = case.anvil.run(*case.command())
    stopped_before_launch(case, done, "model.gguf")


def test_program_absent(case):
    done = case.qualify(recipe={"launch.program": ["/nonexistent/llama-server"]})
    case.explained(done, failed_step="launch", decision="rejected")
    assert "/nonexistent/llama-server" in "\n".join(done.json["reasons"]), done


def test_program_not_executable(case):
    program = case.folder / "server"
    program.write_text("not a program")
    done = case.qualify(recipe={"launch.program": [str(program)]})
    case.explained(done, failed_step="launch", decision="rejected")
