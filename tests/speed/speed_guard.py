#!/usr/bin/env python3
"""Instructions of short pieces of work against the figures in expected.json:

  python3 tests/speed/speed_guard.py build/bench/bench_speed_guard [--update]

Counted by valgrind, so they are the same on a busy machine and an idle one, but of AVX2 kernels:
valgrind knows no AVX-512. A figure that is off by more than 3 % either way fails: more instructions
need a reason, and fewer a new figure. --update writes the figures of this compiler. Exit code 77:
nothing to compare with (no valgrind, no AVX2, or a compiler without figures).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "examples/models/story.gguf"
FIGURES = HERE / "expected.json"
BAND = 0.03
# What a count is divided by: the tokens of bench_speed_guard's tasks.
TASKS = {"decode": 16, "prefill": 64, "q8_0": 16, "q4_0": 16, "q8_0_vector": 1, "q4_0_vector": 1}


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def run(command):
    done = subprocess.run(
        command, env=dict(os.environ, TENON_ISA="avx2"), capture_output=True, text=True
    )
    if done.returncode != 0 and "TENON_ISA" in done.stderr:
        skip("this machine, or valgrind on it, has no AVX2")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} exited with {done.returncode}:\n{done.stderr}")
    return done


def instructions_per_token(program, task):
    done = run(
        ["valgrind", "--tool=callgrind", "--toggle-collect=speed_guard_counted",
         f"--callgrind-out-file={os.devnull}", program, task, MODEL]
    )
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if collected is None or int(collected[1]) == 0:
        sys.exit(f"valgrind counted nothing in {task}:\n{done.stderr}")
    return round(int(collected[1]) / TASKS[task])


def main():
    parser = argparse.ArgumentParser(description="Counts instructions and compares them.")
    parser.add_argument("program", help="bench_speed_guard")
    parser.add_argument("--update", action="store_true", help="write the figures found")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed")
    compiler = run([options.program, "compiler"]).stdout.strip()
    known = json.loads(FIGURES.read_text()) if FIGURES.is_file() else {}
    if compiler not in known and not options.update:
        skip(f"expected.json has no figures for {compiler}; --update adds them")

    found = {task: instructions_per_token(options.program, task) for task in TASKS}
    failed = False
    for task, count in found.items():
        line = f"{compiler} {task:12} {count:9} instructions per token"
        expected = known.get(compiler, {}).get(task)
        if expected is not None:
            change = count / expected - 1
            line += f", expected {expected} ({change:+.1%})"
            if abs(change) > BAND:
                failed = True
                line += "  MORE" if change > 0 else "  FEWER"
        elif not options.update:
            failed = True
            line += ", which has no expected figure"
        print(line)
    if options.update:
        known[compiler] = found
        FIGURES.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
        print(f"wrote {FIGURES.name}")
    elif failed:
        sys.exit(
            f"a count differs by more than {BAND:.0%}. If that is meant, update the figures:\n"
            f"  python3 tests/speed/speed_guard.py {options.program} --update"
        )


main()
