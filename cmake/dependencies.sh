# Sourced by the scripts that build: makes sure that what a build needs is there.
# On Debian and its descendants, as root, missing packages are installed; otherwise they are named.

# need NAME...: each NAME is a Debian package, or COMMAND:PACKAGE to be content with any COMMAND.
need() {
  local item missing=()
  for item in "$@"; do
    if [[ $item == *:* ]]; then
      command -v "${item%%:*}" > /dev/null || missing+=("${item#*:}")
    elif command -v dpkg-query > /dev/null; then
      [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$item" 2> /dev/null) == ii* ]] || missing+=("$item")
    fi # elsewhere CMake looks for the library and says what it misses
  done
  if ((${#missing[@]} == 0)); then return 0; fi

  if [[ $(id -u) == 0 ]] && command -v apt-get > /dev/null; then
    echo "-- installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { DEBIAN_FRONTEND=noninteractive apt-get update \
        && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
        < /dev/null > "$log" 2>&1; then
      tail -20 "$log" >&2
      echo "error: apt-get could not install ${missing[*]}; its output is above" >&2
      rm -f "$log"
      return 1
    fi
    rm -f "$log"
  else
    echo "error: these packages are needed and missing (names as in Debian): ${missing[*]}" >&2
    echo "       install them, e.g. with: sudo apt-get install ${missing[*]}" >&2
    return 1
  fi
}

build_packages=(c++:g++ cmake:cmake)
command -v make > /dev/null || build_packages+=(ninja:ninja-build)
text_packages=(libpcre2-dev libutf8proc-dev pkg-config:pkg-config)
example_packages=(libcli11-dev "${text_packages[@]}")
test_packages=(catch2 libpcre2-dev libutf8proc-dev libeigen3-dev nlohmann-json3-dev pkg-config:pkg-config python3:python3 valgrind:valgrind ccache:ccache)
bench_packages=(libbenchmark-dev)
jobs=$(nproc 2> /dev/null || echo 2)
export CCACHE_DEPEND=${CCACHE_DEPEND:-1} # it asks the compiler what it read instead of preprocessing

# Ninja where it is there; a build tree that exists keeps its generator.
if command -v ninja > /dev/null || ! command -v make > /dev/null; then
  export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
fi
