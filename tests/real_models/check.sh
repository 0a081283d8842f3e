#!/usr/bin/env bash
# Real models as their users have them, against what llama.cpp was recorded to make of them:
#   bash tests/real_models/check.sh BIN [FOLDER]
# BIN holds the example programs; models are fetched into FOLDER (build/models) unless they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$1 folder=${2:-build/models}
text=../shared/data/texts/shakespeare_64k.txt
for name in smollm2 gemma3; do
  model=$(bash examples/fetch_model.sh "$name" "$folder")
  echo "-- $model"
  python3 tests/real_models/check.py "$bin" "$model" "tests/real_models/expected/$name.json" "$text"
  if [[ $name == smollm2 ]]; then
    # The first greedy answer that was recorded, up to its end.
    answer=$(echo 'What is the capital of France?' | "$bin/chat" "$model" --temperature 0 --activations f32 2> /dev/null)
    echo "chat: $answer"
    [[ $answer == 'The capital of France is Paris.' ]] || { echo "FAILED: the recorded answer is another"; exit 1; }
  fi
done
