# Shared by the scripts of this folder; to be sourced, from bash, by a script that has set `-uo pipefail`.
# Conventions: every step has a name and a remedy; a failing step prints both, the end of its output and where the
# whole output is, and ends the script with the step's own meaning: 2 = called wrongly, 3 = this machine lacks
# something, 1 = the step itself failed.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=${ANVIL_LOGS:-$ROOT/build/logs}
STARTED=$SECONDS

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' OFF=$'\e[0m'
else
  BOLD='' RED='' GREEN='' YELLOW='' OFF=''
fi

say()  { printf '%s\n' "$*"; }
note() { printf '%s\n' "${YELLOW}note:${OFF} $*"; }
die()  { # die CODE MESSAGE...
  local code=$1; shift
  printf '%s\n' "${RED}error:${OFF} $*" >&2
  exit "$code"
}
minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# step NAME REMEDY COMMAND...: runs it with its output in a file, prints one line with the time it took.
step() {
  local name=$1 remedy=$2 began=$SECONDS code log
  shift 2
  mkdir -p "$LOGS" || die 3 "cannot write $LOGS"
  log=$LOGS/$(tr -c 'a-z0-9\n' '-' <<<"${name,,}").log
  if [[ -n ${ANVIL_VERBOSE:-} ]]; then
    "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
  else
    [[ -t 1 ]] && printf '  %-44s …' "$name"
    "$@" >"$log" 2>&1
    code=$?
    [[ -t 1 ]] && printf '\r'
  fi
  if ((code == 0)); then
    printf '%s %-44s %s\n' "${GREEN}ok${OFF}" "$name" "$(minutes $((SECONDS - began)))"
    return 0
  fi
  printf '%s %-44s %s\n' "${RED}FAILED${OFF}" "$name" "$(minutes $((SECONDS - began)))"
  [[ -z ${ANVIL_VERBOSE:-} ]] && tail -n 40 "$log" | sed 's/^/    /' >&2
  {
    printf '%s\n' "${RED}error:${OFF} the step \"$name\" failed (exit $code)"
    printf '  what to do: %s\n' "$remedy"
    printf '  all of its output: %s\n' "$log"
  } >&2
  exit $((code == 2 || code == 3 ? code : 1))
}

# Where models, engines and wrappers live; the same rule as in the program.
data_dir() { printf '%s' "${ANVIL_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/anvil}"; }

system_id() { (. /etc/os-release 2>/dev/null && printf '%s-%s' "${ID:-unknown}" "${VERSION_ID:-}"); }

# packages SECTION...: the names of those sections that apply to this system.
packages() {
  local system section='' line name only wanted=" $* "
  system=$(system_id)
  while IFS= read -r line; do
    line=${line%%#*}
    read -r name only <<<"$line" || true
    case $name in
      '') continue ;;
      \[*) section=${name:1:-1} ;;
      *) if [[ $wanted == *" $section "* && ( -z $only || $only == "@${system%%-*}" ) ]]; then printf '%s\n' "$name"; fi ;;
    esac
  done <"$ROOT/packages.txt"
}

# need SECTION...: makes sure that what those sections of packages.txt name is there.
need() {
  case $(system_id) in
    debian-12 | ubuntu-24.04) need_apt "$@" ;;
    *) need_anyway "$@" ;;
  esac
}

need_apt() {
  local name missing=() sudo=()
  while IFS= read -r name; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
  done < <(packages "$@" | sort -u)
  ((${#missing[@]} == 0)) && return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die 3 "missing packages, and neither root nor sudo to install them. Ask an administrator to run:
  apt-get install --no-install-recommends ${missing[*]}"
    sudo=(sudo)
  fi
  apt_get() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"; }
  apt_install() {
    # The package lists may be older than the archive, so a first failure is answered with an update.
    apt_get install --no-install-recommends "${missing[@]}" && return 0
    apt_get update && apt_get install --no-install-recommends "${missing[@]}"
  }
  # sudo asks for its password on the terminal, before the output goes to a file.
  ((EUID == 0)) || sudo -v || die 3 "sudo refused; run as root or install by hand: ${missing[*]}"
  step "install ${#missing[@]} packages ($*)" \
    "check the network and the package sources (/etc/apt), then: apt-get update && apt-get install ${missing[*]}" \
    apt_install
}

# On a system that we do not know: nothing is installed, everything that is lacking is named.
need_anyway() {
  local lacking=() section header
  command_or_lack() { command -v "$1" >/dev/null || lacking+=("$2"); }
  for section in "$@"; do
    case $section in
      build)
        command_or_lack cmake "cmake 3.25 or newer"
        command_or_lack ninja "ninja"
        command_or_lack g++ "g++ 12 or newer"
        if command -v g++ >/dev/null; then
          (($(g++ -dumpversion | cut -d. -f1) >= 12)) || lacking+=("g++ 12 or newer (found $(g++ -dumpversion))")
          for header in nlohmann/json.hpp CLI/CLI.hpp tl/expected.hpp simdjson.h sqlite3.h openssl/ssl.h toml++/toml.h zstd.h; do
            g++ -std=c++20 -E -x c++ - <<<"#include <$header>" >/dev/null 2>&1 || lacking+=("the header <$header>")
          done
        fi ;;
      engine)
        command_or_lack flock "flock (util-linux)"
        python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
          lacking+=("python3 3.10 or newer with venv and pip") ;;
      test)
        command_or_lack clang++-16 "clang++-16 with its sanitizer runtimes"
        command_or_lack clang-format-16 "clang-format-16"
        command_or_lack faketime "faketime"
        command_or_lack bwrap "bubblewrap"
        command_or_lack ss "iproute2"
        python3 -c 'import pytest' 2>/dev/null || lacking+=("pytest for python3") ;;
      coverage) command_or_lack lcov "lcov" ;;
      bench) command_or_lack hyperfine "hyperfine" ;;
    esac
  done
  if ((${#lacking[@]})); then
    {
      printf '%s\n' "${RED}error:${OFF} this system is $(system_id) on $(uname -m); packages are installed only on Debian 12 and Ubuntu 24.04 (x86-64). Missing here:"
      printf '  - %s\n' "${lacking[@]}"
      printf '%s\n' "Install these and run the script again (packages.txt has the Debian names)."
    } >&2
    exit 3
  fi
  note "this system ($(system_id)) is not one that we test on; everything needed was found"
}

# How many compilers this machine can bear: one per core, and 1.5 GB of memory for each.
jobs_here() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  ((memory < 1)) && memory=1
  printf '%d' $((cores < memory ? cores : memory))
}

# build PRESET [CMAKE-ARGUMENT...] [-- TARGET...]
build() {
  local preset=$1 arguments=() targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do arguments+=("$1"); shift; done
  (($#)) && shift
  (($#)) && targets=(--target "$@")
  command -v ccache >/dev/null && arguments+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cd "$ROOT" && cmake --preset "$preset" "${arguments[@]}" && cmake --build --preset "$preset" -j "$(jobs_here)" "${targets[@]}"
}
