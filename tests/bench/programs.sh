#!/usr/bin/env bash
# bench_model and bench_probe as a user meets them; nothing is timed: bash programs.sh BIN MODEL
# Good input gives JSON with the expected members; bad input exit code 1 and one line on stderr.
set -uo pipefail
bin=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "FAILED: $*" >&2
  failed=1
}
if ! command -v python3 > /dev/null; then
  echo 'SKIPPED: python3, which reads the JSON, is not installed'
  exit 77
fi

# holds PROGRAM COMMAND...: exit code 0, nothing on stderr, and stdout is JSON `d` for which the
# Python expression PROGRAM is true.
holds() {
  local program=$1
  shift
  "$@" > "$work/out" 2> "$work/err" || complain "$* exited with $?: $(cat "$work/err")"
  [[ ! -s $work/err ]] || complain "$* printed on stderr: $(cat "$work/err")"
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval("(" + sys.argv[2] + ")"))' \
    "$work/out" "$program" || complain "$*: not so: $program; printed: $(cat "$work/out")"
}
# refuses PART COMMAND...: exit code 1, nothing on stdout, one line on stderr, which contains PART.
refuses() {
  local part=$1 code
  shift
  timeout 60 "$@" > "$work/out" 2> "$work/err" < /dev/null
  code=$?
  [[ $code == 1 ]] || complain "$* exited with $code instead of 1: $(cat "$work/err")"
  [[ ! -s $work/out ]] || complain "$* printed on stdout"
  [[ $(wc -l < "$work/err") == 1 ]] || complain "$* printed not one line: $(cat "$work/err")"
  grep -qF -- "$part" "$work/err" || complain "$* does not mention '$part': $(cat "$work/err")"
}

for program in bench_model bench_probe; do
  "$bin/$program" --help > "$work/out" 2> "$work/err" || complain "$program --help exited with $?"
  [[ -s $work/out && ! -s $work/err ]] || complain "$program --help must print to stdout only"
done

# Two lengths of prompts; three numbers of sequences at two depths, for each number of threads.
small=(-p 16,5 -n 3 -b 1,2,3 -d 0,9 -r 2)
holds '[d["program"], d["architecture"], d["cache"], d["arithmetic"]] == ["tenon", "llama", "q8_0", "int8"]
  and all(k in d for k in ("version", "cpu", "isa", "model", "weight_bytes"))' \
  "$bin/bench_model" "$model" "${small[@]}" -t 1 --cache q8_0 --json
holds 'sorted((r["test"], r["threads"], r["sequences"], r["depth"], r["tokens"]) for r in d["results"])
  == sorted([("prefill", t, 1, 0, p) for t in (1, 2) for p in (16, 5)]
            + [("decode", t, b, n, 3) for t in (1, 2) for b in (1, 2, 3) for n in (0, 9)])' \
  "$bin/bench_model" "$model" "${small[@]}" -t 1,2 --json
holds 'all(len(r["runs"]) == 2 and min(r["runs"]) <= r["tokens_per_second"] <= max(r["runs"]) and
  r["gops"] > 0 and r["peak_gops"] > 0 and r["share_of_peak"] > 0 and r["predicted_tokens_per_second"] > 0 and
  abs(r["predicted_over_measured"] * r["tokens_per_second"] / r["predicted_tokens_per_second"] - 1) < 1e-4 for r in d["results"])' \
  "$bin/bench_model" "$model" "${small[@]}" -t 1 --json
# A step reads all weights (their embedding is the output too), and rows of 4 layers of 2 x 2 heads of
# 32 values in 16 bits. In the middle of 3 steps from depth d there are d + 2 rows.
holds '[r["bytes_per_step"] - d["weight_bytes"] for r in d["results"] if r["test"] == "decode"]
  == [b * (n + 2) * 1024 for b in (1, 2, 3) for n in (0, 9)]' \
  "$bin/bench_model" "$model" "${small[@]}" -t 1 --json
holds '[r["test"] for r in d["results"]] == ["prefill"] and "bytes_per_step" not in d["results"][0]' \
  "$bin/bench_model" "$model" -p 8 -n 0 -t 1 -r 1 --json
"$bin/bench_model" "$model" -p 8 -n 2 -t 1 -r 1 > "$work/out" || complain 'bench_model without --json'
[[ $(grep -cE '^(prefill|decode) .* [0-9.]+ +[0-9.]+$' "$work/out") == 2 ]] || complain "bench_model printed: $(cat "$work/out")"

refuses required "$bin/bench_model"
refuses --no-such "$bin/bench_model" "$model" --no-such
refuses --no-such "$bin/bench_probe" --no-such
refuses 'nothing of that name' "$bin/bench_model" "$work/absent.gguf"
refuses '-p must be 1 to' "$bin/bench_model" "$model" -p 0
refuses '-p' "$bin/bench_model" "$model" -p x
refuses 'context of 512' "$bin/bench_model" "$model" -p 513
refuses 'context of 512' "$bin/bench_model" "$model" -d 500 -n 13
refuses '-d must be 0 to' "$bin/bench_model" "$model" -d 0,-1
refuses '-n must be 0 to' "$bin/bench_model" "$model" -n -1
refuses '-b must be 1 to' "$bin/bench_model" "$model" -b 0
refuses '-t must be 1 to' "$bin/bench_model" "$model" -t 0
refuses '-t must be 1 to' "$bin/bench_model" "$model" -t 100000
refuses '-r must be 1 to' "$bin/bench_model" "$model" -r 0
refuses 'one of f16' "$bin/bench_model" "$model" --cache q3
refuses '-t must be' "$bin/bench_probe" -t 0
refuses '--footprint must be' "$bin/bench_probe" --footprint 0.5
exit $failed
