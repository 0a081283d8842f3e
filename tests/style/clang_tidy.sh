#!/usr/bin/env bash
# The checks of .clang-tidy on the headers and the examples: bash clang_tidy.sh ROOT BUILD
set -euo pipefail
root=$1 build=$2
tool=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [[ -z $tool ]]; then
  echo "SKIPPED: clang-tidy is not installed"
  exit 77
fi
if [[ ! -f $build/compile_commands.json ]]; then
  echo "SKIPPED: this build tree has no compile_commands.json"
  exit 77
fi
# One unit that includes every header, and those that instantiate the models.
units=("$root"/tests/headers/twice_b.cpp)
for unit in "$root"/examples/*.cpp; do
  if grep -qF "$unit" "$build/compile_commands.json"; then units+=("$unit"); fi
done
printf '%s\n' "${units[@]}" \
  | xargs -P "$(nproc)" -n 1 "$tool" -p "$build" --quiet --warnings-as-errors='*' 2>&1 \
  | { grep -v 'warnings generated\|warnings treated as errors\|^Suppressed\|^Use -header-filter' || true; }
