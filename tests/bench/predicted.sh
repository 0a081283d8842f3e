#!/usr/bin/env bash
# Decoding of a model of 1.1 B parameters in Q8_0 takes what the cost model predicts for this
# machine, within 15 %: bash predicted.sh BIN
# Skipped, with the figures, where others use the machine: then neither of the two says anything.
set -uo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() {
  echo "SKIPPED: $*"
  exit 77
}
[[ -r /proc/stat ]] || skip "no /proc/stat, which says whether others use the machine"
command -v python3 > /dev/null || skip 'python3, which reads the JSON, is not installed'
[[ $(df --output=avail -k "$work" | tail -1) -gt 1500000 ]] || skip 'no 1.5 GB of disk'
[[ $(awk '/MemAvailable/ { print $2 }' /proc/meminfo 2> /dev/null || echo 0) -gt 4000000 ]] || skip 'no 4 GB of memory'
"$bin/bench_synth" "$work/model.gguf" --shape llama-1b --format q8_0 || exit 1
python3 - "$bin/bench_model" "$work/model.gguf" << 'END'
import json, os, resource, statistics, subprocess, sys

# Seconds that CPUs were busy since the system started, and those of this program's children.
def busy():
    with open("/proc/stat") as stat:
        user, nice, system, idle, wait, irq, soft, stolen = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK")
def own():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

rows, others, wall = [], 0, 0
for _ in range(5):
    before, ours, start = busy(), own(), os.times().elapsed
    text = subprocess.run([sys.argv[1], sys.argv[2], "-p", "1", "-n", "16", "-t", "1", "-r", "3", "--json"],
                          check=True, capture_output=True, text=True).stdout
    others += busy() - before - (own() - ours)
    wall += os.times().elapsed - start
    rows += [r for r in json.loads(text)["results"] if r["test"] == "decode"]
ratio = statistics.median(r["predicted_over_measured"] for r in rows)
runs = [rate for r in rows for rate in r["runs"]]
reads = [r["read_gbps"] for r in rows]
spread, drift, share = max(runs) / min(runs) - 1, max(reads) / min(reads) - 1, others / wall
print(f"predicted / measured: {ratio:.3f}, from {min(r['predicted_over_measured'] for r in rows):.3f} to "
      f"{max(r['predicted_over_measured'] for r in rows):.3f}; {statistics.median(runs):.2f} tokens/s, rates apart by "
      f"{100 * spread:.0f} %, bandwidths by {100 * drift:.0f} %, others kept {share:.2f} CPUs busy")
if spread > 0.1 or drift > 0.1 or share > 0.1:
    print("SKIPPED: the machine is not quiet")
    sys.exit(77)
sys.exit(abs(ratio - 1) > 0.15)
END
