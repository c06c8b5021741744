"""The library of a layer needs symbols of the layers that it states in USES, and of no other.

check_includes.py reads the include lines of a layer alone, and the linker takes a symbol from any layer below it. So
inline functions of a header may need a layer that is not stated: this test reads the archives. DPWA_BUILD is the
folder of a build without sanitizers.
"""

from __future__ import annotations

import os
import subprocess
import unittest
from collections.abc import Mapping
from pathlib import Path

from scripts_path import SCRIPTS  # before the modules of scripts/
import check_includes

Symbols = tuple[set[str], set[str]]  # those that an archive defines, and those that it needs


def symbols_of(archive: Path) -> Symbols:
    listed = subprocess.run(["nm", "--portability", archive], check=True, capture_output=True, text=True).stdout
    rows = [words for words in map(str.split, listed.splitlines()) if len(words) > 1]
    needed = {name for name, kind, *_ in rows if kind in ("U", "w", "v")}
    defined = {name for name, kind, *_ in rows if kind == "u" or kind.isupper() and kind != "U"}
    return defined, needed - defined


def problems(uses: Mapping[str, set[str]], symbols: Mapping[str, Symbols]) -> list[str]:
    """What layers need of layers that they do not state, one line each."""
    lines = []
    for layer, stated in uses.items():
        for symbol in sorted(symbols[layer][1]):
            homes = {home for home, (defined, _) in symbols.items() if symbol in defined}
            if homes and not homes & stated:
                lines.append(f"{layer} needs {symbol} of {', '.join(sorted(homes))}, which its USES does not state")
    return lines


class LayerSymbols(unittest.TestCase):
    @unittest.skipUnless("DPWA_BUILD" in os.environ, "ctest sets DPWA_BUILD")
    def test_every_layer_states_the_layers_whose_symbols_it_needs(self) -> None:
        build = Path(os.environ["DPWA_BUILD"])
        uses = {name: layer.uses for name, layer in check_includes.Tree(SCRIPTS.parent).layers.items()}
        symbols = {name: symbols_of(build / f"dpwa/libdpwa_{name}.a") for name in uses}
        symbols["interpolation"] = symbols_of(build / "interpolation/libdpwa_interpolation.a")
        self.assertIn("net", uses)
        self.assertEqual(problems(uses, symbols), [])
        # The same with a layer that is stated no more: the archives are read, and the problem is found.
        found = problems({"node": uses["node"] - {"net"}}, symbols)
        self.assertTrue(found and all("which its USES does not state" in line for line in found), found)

    def test_a_symbol_of_a_layer_that_is_not_stated_is_found(self) -> None:
        symbols = {"base": ({"f"}, set()), "log": ({"g"}, {"f"}), "node": (set(), {"f", "g", "malloc"})}
        self.assertEqual(problems({"base": set(), "log": {"base"}, "node": {"base", "log"}}, symbols), [])
        self.assertEqual(problems({"base": set(), "log": {"base"}, "node": {"log"}}, symbols),
                         ["node needs f of base, which its USES does not state"])


if __name__ == "__main__":
    unittest.main()
