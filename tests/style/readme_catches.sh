#!/usr/bin/env bash
# readme.sh accepts a README that agrees with its files and refuses one that does not.
set -euo pipefail
check=$PWD/readme.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

printf '%s\n' 'int main() {' '  // [step]' '  if (true) {' '    run();' '  }' '' '  // [step]' '}' > "$work/a.cpp"
commands=$'```\nbash examples/demo.sh\n```\n```\nbash tests/check.sh\n```'
fence='```'
step=$'if (true) {\n  run();\n}\n'

# expect CODE TEXT: what readme.sh makes of a README.md with that text.
expect() {
  local code=0 said
  printf '%s\n' "$2" > "$work/README.md"
  said=$(bash "$check" "$work" 2>&1) || code=$?
  if ((code != $1)); then
    printf 'exit code %s, expected %s, for:\n%s\nit said:\n%s\n' "$code" "$1" "$2" "$said"
    failed=1
  fi
}

expect 0 "$commands"
expect 1 'bash tests/check.sh'
expect 1 "${commands/tests\/check.sh/tests\/check.sh now}"
expect 0 "$commands"$'\n<!-- file: a.cpp -->\n'"${fence}cpp"$'\n'"$(cat "$work/a.cpp")"$'\n'"$fence"
expect 0 "$commands"$'\n<!-- file: a.cpp [step] -->\n\n'"${fence}cpp"$'\n'"$step"$'\n'"$fence"
expect 1 "$commands"$'\n<!-- file: a.cpp [step] -->\n'"${fence}cpp"$'\n'"${step/run/walk}"$'\n'"$fence"
expect 1 "$commands"$'\n<!-- file: a.cpp [other] -->\n'"${fence}cpp"$'\n'"$step"$'\n'"$fence"
expect 1 "$commands"$'\n<!-- file: b.cpp -->\n'"${fence}cpp"$'\n'"$step"$'\n'"$fence"
expect 1 "$commands"$'\n<!-- file: a.cpp -->\nprose'
exit $failed
