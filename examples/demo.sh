#!/usr/bin/env bash
# Builds the example `quickstart` and lets the shipped model tell a story: bash examples/demo.sh [prompt]
# The build tree is build/demo, or the one that TENON_BUILD_DIR names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/dependencies.sh
build=${TENON_BUILD_DIR:-build/demo}
prompt=${1:-Once upon a time}

need "${build_packages[@]}" "${example_packages[@]}"
echo "-- building the example in $build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DTENON_BUILD_TESTS=OFF -DTENON_BUILD_BENCH=OFF \
    && cmake --build "$build" -j "$jobs" --target quickstart; } > "$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
echo "-- quickstart examples/models/story.gguf \"$prompt\""
"$build/examples/quickstart" examples/models/story.gguf "$prompt"
