#!/usr/bin/env bash
# Every source is as clang-format 14 would write it: bash clang_format.sh ROOT
set -euo pipefail
cd "$1"
for tool in clang-format-14 clang-format; do
  command -v "$tool" > /dev/null && [[ $("$tool" --version) == *"version 14."* ]] && break
  tool=
done
if [[ -z $tool ]]; then
  echo "SKIPPED: clang-format 14 is not installed (other versions format differently)"
  exit 77
fi
failed=0
while IFS= read -r file; do
  if ! "$tool" "$file" | diff -u --label "$file" --label "$file, formatted" "$file" -; then
    failed=1
  fi
done < <(find include tests examples bench \( -name '*.hpp' -o -name '*.inl' -o -name '*.cpp' \) | sort)
((failed)) && echo "run: $tool -i FILE"
exit $failed
