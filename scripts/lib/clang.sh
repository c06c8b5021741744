# shellcheck shell=bash
# Which clang the scripts use, and how they install one. Needs lib/common.sh and lib/system_packages.sh.

clang_versions=({21..16})  # 16 is the oldest that compiles coroutines with libstdc++

# find_clang [CHECK]: prints the name of a clang++ of one of these versions or later for which `CHECK NAME` is true.
find_clang() {
  local name version
  for name in clang++ "${clang_versions[@]/#/clang++-}"; do
    command -v "$name" >/dev/null || continue
    version=$("$name" -dumpversion)
    if ((${version%%.*} >= clang_versions[-1])) && "${1:-true}" "$name"; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

# has_libfuzzer COMPILER
has_libfuzzer() {
  echo 'int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    "$1" -x c - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null
}

# ensure_clang: prints the name of a clang++ that has the sanitizers and libFuzzer; installs one where there is none.
ensure_clang() {
  local version
  if ! find_clang has_libfuzzer; then
    for version in "${clang_versions[@]}"; do
      [[ -n $(candidate_version "clang-$version") ]] || continue
      {
        run_logged 'apt-get update' apt-update as_root apt-get update
        run_logged "installing clang $version" install-clang apt_install "clang-$version" "libclang-rt-$version-dev"
      } >&2
      find_clang has_libfuzzer && return
      break
    done
    die 'found no clang of version 16 or later with libFuzzer; install one with its compiler-rt'
  fi
}
