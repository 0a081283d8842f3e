#!/usr/bin/env bash
# Builds everything and runs every test: bash tests/check.sh [CMake options]
# The build tree is build/, or the one that TENON_BUILD_DIR names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/dependencies.sh
build=${TENON_BUILD_DIR:-build}

echo "-- dependencies"
need "${build_packages[@]}" "${example_packages[@]}" "${test_packages[@]}" "${bench_packages[@]}"
echo "-- configuring in $build"
cmake -S . -B "$build" -DTENON_BUILD_TESTS=ON -DTENON_BUILD_EXAMPLES=ON -DTENON_BUILD_BENCH=ON "$@"
echo "-- building with $jobs jobs"
cmake --build "$build" -j "$jobs"
echo "-- testing"
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-label-summary
