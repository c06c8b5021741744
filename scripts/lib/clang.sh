# shellcheck shell=bash
# Which clang the scripts use.

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
