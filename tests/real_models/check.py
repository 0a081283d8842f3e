#!/usr/bin/env python3
"""Compares a real model with what llama.cpp was recorded to make of it (record.py):

  python3 tests/real_models/check.py BIN MODEL.gguf expected/NAME.json TEXT

BIN is the folder of the example programs. Ids of texts and, in floats, every greedy id must be
equal, unless the recorded gap to the next best id says that rounding may decide; perplexity in
floats must agree to 1e-3. With int8 activations it is printed beside the recorded one.
"""

import array
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDING = 5e-3  # logits of two float implementations differ by less


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"FAILED: {command[0]} exited with {done.returncode}: {done.stderr}")
    return done.stdout


def ids_of(text):
    return [int(part) for part in text.replace("\n", ",").split(",") if part.strip()]


def rows_of(path):
    """The rows of a float32 .npy file [rows, columns]."""
    data = path.read_bytes()
    start = 10 + int.from_bytes(data[8:10], "little")
    header = data[10:start].decode()
    columns = int(header.split("(")[1].split(")")[0].split(",")[1])
    values = array.array("f", data[start:])
    return [values[at : at + columns] for at in range(0, len(values), columns)]


def main():
    binaries, model, expected, text = map(Path, sys.argv[1:])
    expected = json.loads(expected.read_text())
    failed = False

    def require(condition, what):
        nonlocal failed
        if not condition:
            print(f"FAILED: {what}")
            failed = True

    for prompt in expected["prompts"]:
        name = repr(prompt["text"][:40])
        special = ["--special"] if "<|im_start|>" in prompt["text"] else []
        got = ids_of(run(binaries / "tokenize", *special, model, prompt["text"]))
        # A start id in front is the file's wish; it is not part of what was recorded.
        got = got[len(got) - len(prompt["ids"]) :]
        require(got == prompt["ids"], f"ids of {name}: {got}, not {prompt['ids']}")
        fed = prompt["fed"] + prompt["greedy"][:-1]
        with tempfile.TemporaryDirectory() as work:
            out = Path(work) / "logits.npy"
            tokens = ",".join(map(str, fed))
            run(binaries / "score", model, "--tokens", tokens, "--activations", "f32", "--logits", out)
            rows = rows_of(out)[len(prompt["fed"]) - 1 :]
        equal = 0
        for step, (row, greedy) in enumerate(zip(rows, prompt["greedy"])):
            best = max(row)
            equal += row[greedy] == best
            require(
                best - row[greedy] <= ROUNDING,
                f"{name}, greedy id {step}: {row.index(best)}, not {greedy}, by {best - row[greedy]}",
            )
        print(f"{name}: {len(got)} ids equal, {equal} of {len(prompt['greedy'])} greedy ids equal")

    want, start = expected["text"], expected["prompts"][0]["fed"][0]
    with open(text, encoding="utf-8", newline="") as file:
        ids = ids_of(run(binaries / "tokenize", model, file.read(16384)))
    ids = ids[ids[0] == start :][: want["ids"]]
    tokens = ",".join(map(str, ids))
    for activations, name in (("f32", "f32"), ("int8", "native")):
        said = run(
            binaries / "score", model, "--tokens", tokens, "--perplexity", "--window", want["window"],
            "--activations", activations,
        )
        value = float(re.search(r"perplexity ([0-9.]+)", said)[1])
        recorded = want["perplexity"][name]
        print(f"perplexity of {len(ids)} ids, {activations}: {value:.4f}; {expected['engine']}: {recorded}")
        if activations == "f32":
            require(abs(value / recorded - 1) < 1e-3, f"perplexity must be {recorded}, it is {value}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
