#!/usr/bin/env python3
"""tenon and llama.cpp on the same files, in turn, against what the machine can do:

  python3 bench/compare.py MODEL.gguf... [--threads 2] [-p 128,512] [-n 32] [--rounds 3]

Needs the programs bench_model and bench_probe, CMake and a C++ compiler, and pip for the first
run: the source package of llama-cpp-python has llama.cpp in it, which is built for this machine
(some minutes, in build/peers). Prebuilt packages will not do: they stop at AVX2.

A round is one process of each; the table has the medians of all rounds. The bounds are those of
bench_probe, of processor time: memory read for decoding, for prompts the best arithmetic there is
for such weights (int8 tiles where the machine has them, whether or not a program uses them).
"""

import argparse
import json
import os
import platform
import statistics
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEER = "llama-cpp-python==0.3.36"
NEEDS = "typing-extensions==4.12.2"
# For this very machine, and the library alone.
FLAGS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_BUILD_COMMON=OFF",
    "-DLLAMA_BUILD_TOOLS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
]
TILES = ROOT / "bench/peer_tiles.hpp"  # says what it is for


def peer_command(folder, jobs):
    """The Python and environment of peer_llama_cpp.py, after building llama.cpp where it is not."""
    folder = folder.resolve()
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    source, build = folder / "source", folder / "build"
    env = dict(os.environ, PYTHONPATH=str(source), LLAMA_CPP_LIB_PATH=str(build / "bin"))
    wanted = "\n".join([PEER, NEEDS, *FLAGS, TILES.read_text()])
    stamp, log = folder / "built.txt", folder / "build.log"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python, env
    print(f"-- building {PEER} in {folder}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:

        def step(*command):
            command = [str(word) for word in command]
            if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
                sys.exit(f"compare.py: {PEER} could not be built; what was said is in {log}")

        venv.create(folder / "venv", clear=True, with_pip=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        step(*pip, "install", NEEDS)
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(folder / "package", ignore_errors=True)
        source_only = ["--no-deps", "--no-binary", PEER.split("=")[0]]
        step(*pip, "download", *source_only, "--dest", folder / "package", PEER)
        (package,) = (folder / "package").glob("*.tar.gz")
        with tarfile.open(package) as archive:
            top = archive.getnames()[0].split("/")[0]
            safe = dict(filter="data") if hasattr(tarfile, "data_filter") else {}
            archive.extractall(folder, **safe)
        (folder / top).rename(source)
        shutil.copy(TILES, folder)
        first = f"-DCMAKE_CXX_FLAGS=-include '{folder / TILES.name}'"
        step("cmake", "-S", source / "vendor/llama.cpp", "-B", build, *FLAGS, first)
        step("cmake", "--build", build, "--target", "llama", "--parallel", jobs)
    stamp.write_text(wanted)
    return python, env


def run_json(command, env=None):
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"compare.py: {Path(command[0]).name} exited with {done.returncode}")
    return json.loads(done.stdout)


def commit():
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else "no commit"


def key(result):
    return tuple(result[k] for k in ("test", "threads", "sequences", "depth", "tokens"))


def rates(runs):
    """From the test to the tokens/s of every round."""
    table = {}
    for run in runs:
        for result in run["results"]:
            table.setdefault(key(result), []).append(result["tokens_per_second"])
    return table


def bound_of(probe, threads, what):
    """The highest of those bounds; `what` is in order of preference."""
    for name in what:
        of_name = [b for b in probe["bounds"] if (b["what"], b["threads"]) == (name, threads)]
        if of_name:
            return max(b["thread"] for b in of_name)
    sys.exit(f"compare.py: bench_probe measured none of {what}")


def compare(model, options, peer):
    ours, theirs = [], []
    common = [model, "-p", options.p, "-n", options.n, "-b", options.b, "-t", options.threads]
    common += ["-d", options.d, "-r", options.runs, "--cache", options.cache]
    for number in range(options.rounds):
        print(f"-- {Path(model).name}, round {number + 1} of {options.rounds}", file=sys.stderr)
        ours.append(run_json([options.bench / "bench_model", "--json", *common]))
        program = [peer[0], ROOT / "bench/peer_llama_cpp.py", "--version", PEER]
        theirs.append(run_json([*program, *common], peer[1]))
    details = {key(result): result for result in ours[0]["results"]}
    footprints = sorted({r["bytes_per_step"] for r in details.values() if "bytes_per_step" in r})
    probe = run_json(
        [options.bench / "bench_probe", "--json", "-t", options.threads]
        + (["--footprint", max(1, min(footprints[0] / 1e6, 2000))] if footprints else [])
    )
    lines = []
    our_rates, their_rates = rates(ours), rates(theirs)
    for test, result in details.items():
        mine = statistics.median(our_rates[test])
        other = statistics.median(their_rates[test])
        if "bytes_per_step" in result:
            bound = bound_of(probe, result["threads"], ["read given"])
            per_token = result["bytes_per_step"] / 1e9 / result["sequences"]
            unit = "GB/s"
        else:
            tiles = ["int8 tiles", "int8 dot"]
            bound = bound_of(
                probe, result["threads"], tiles if ours[0]["arithmetic"] == "int8" else ["f32 fma"]
            )
            per_token = result["gops"] / result["tokens_per_second"]
            unit = "GOP/s"
        lines.append(
            dict(
                zip(("test", "threads", "sequences", "depth", "tokens"), test),
                tenon=mine,
                peer=other,
                ratio=mine / other,
                bound=bound,
                unit=unit,
                tenon_share=mine * per_token / bound,
                peer_share=other * per_token / bound,
                tenon_rounds=our_rates[test],
                peer_rounds=their_rates[test],
            )
        )
    return dict(model=str(model), lines=lines, probe=probe, tenon=ours, peer=theirs)


def show(result):
    mine, other = result["tenon"][0], result["peer"][0]
    weights = f"weights {mine['weight_bytes'] / 1e6:.1f} MB"
    print(f"\n{result['model']}: {mine['architecture']}, {weights}, cache {mine['cache']}")
    print(f"tenon {mine['version']} ({commit()}), {mine['isa']}")
    print(f"{other['program']}, {other['version']}: {other['system'].strip()}")
    overhead = max(run["python_seconds_per_step"] for run in result["peer"])
    print(f"Python's part of a decode step of {other['program']}: {overhead * 1e6:.1f} us")
    print(
        f"{'test':8} {'threads':>7} {'seqs':>4} {'depth':>6} {'tokens':>6} {'tenon t/s':>10} "
        f"{'peer t/s':>10} {'ratio':>6} {'bound':>14} {'tenon':>6} {'peer':>6}"
    )
    for line in result["lines"]:
        print(
            f"{line['test']:8} {line['threads']:7} {line['sequences']:4} {line['depth']:6} "
            f"{line['tokens']:6} {line['tenon']:10.2f} {line['peer']:10.2f} {line['ratio']:6.2f} "
            f"{line['bound']:8.1f} {line['unit']:5} {line['tenon_share']:6.1%} "
            f"{line['peer_share']:6.1%}"
        )


def main():
    parser = argparse.ArgumentParser(description="tenon and llama.cpp on the same files, in turn.")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", default="2", help="numbers of threads, as 1,2 [2]")
    parser.add_argument("-p", default="128,512", help="lengths of prompts [128,512]")
    parser.add_argument("-n", type=int, default=32, help="decode steps of a run [32]")
    parser.add_argument("-b", default="1", help="sequences decoded at once [1]")
    parser.add_argument("-d", default="0", help="tokens a sequence holds before it is decoded [0]")
    parser.add_argument("--cache", default="f16", choices=["f16", "f32", "q8_0"])
    parser.add_argument("--rounds", type=int, default=3, help="processes of each [3]")
    parser.add_argument("--runs", type=int, default=3, help="runs within a process [3]")
    parser.add_argument("--bench", type=Path, default=ROOT / "build/bench", help="our programs")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers", help="where to build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of that build [all]")
    parser.add_argument("--build-only", action="store_true", help="build the peer and stop")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write everything there")
    options = parser.parse_args()
    if options.build_only:
        peer_command(options.peers, options.jobs)
        return
    if not options.models:
        parser.error("name a model, or --build-only")
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    for name in ("bench_model", "bench_probe"):
        if not (options.bench / name).is_file():
            parser.error(f"{options.bench} has no {name}; build it, or say where with --bench")
    peer = peer_command(options.peers, options.jobs)

    before = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    results = [compare(model, options, peer) for model in options.models]
    print(
        f"{results[0]['probe']['cpu']}, {platform.system()} {platform.machine()}, "
        f"{options.rounds} rounds in turn, medians; load average {before:.2f} at the start"
    )
    for result in results:
        show(result)
    if options.json:
        given = {name: str(value) for name, value in vars(options).items()}
        everything = dict(options=given, load_average=before, results=results)
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


main()
