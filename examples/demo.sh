#!/usr/bin/env bash
# Builds an example and runs it:
#   bash examples/demo.sh [PROMPT]             the shipped model tells a story
#   bash examples/demo.sh --smollm2 [PROMPT]   a chat with SmolLM2-135M-Instruct, which is fetched (98 MB)
#   bash examples/demo.sh --gemma3 [PROMPT]    a text continued by Gemma 3 270M, which is fetched (253 MB)
# The build tree is build/demo, or the one that TENON_BUILD_DIR names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/dependencies.sh
build=${TENON_BUILD_DIR:-build/demo}
model=examples/models/story.gguf
program=quickstart
case ${1:-} in
  --smollm2) program=chat ;;
  --gemma3) program=generate ;;
  -*)
    echo "error: the option must be --smollm2 or --gemma3, it is $1; leave it out for a story" >&2
    exit 1
    ;;
esac
if [[ $program != quickstart ]]; then
  model=$(bash examples/fetch_model.sh "${1#--}" "$build/models")
  shift
fi

need "${build_packages[@]}" "${example_packages[@]}"
echo "-- building the example in $build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DTENON_BUILD_TESTS=OFF -DTENON_BUILD_BENCH=OFF \
      -DTENON_WERROR="${TENON_WERROR:-OFF}" \
    && cmake --build "$build" -j "$jobs" --target "$program"; } > "$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
case $program in
  quickstart)
    prompt=${1:-Once upon a time}
    echo "-- quickstart $model \"$prompt\""
    "$build/examples/quickstart" "$model" "$prompt"
    ;;
  chat)
    # The first prompt, then what the terminal says.
    prompt=${1:-What is a tenon joint?}
    echo "-- chat $model"
    echo "> $prompt"
    { echo "$prompt"; cat; } | "$build/examples/chat" "$model"
    ;;
  generate)
    prompt=${1:-The three most important rules of a good carpenter are}
    echo "-- generate $model --prompt \"$prompt\""
    "$build/examples/generate" "$model" --prompt "$prompt" --max-tokens 100
    ;;
esac
