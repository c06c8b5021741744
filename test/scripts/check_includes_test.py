"""check_includes.py accepts a clean tree and names every kind of violation."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from scripts_path import SCRIPTS  # before the modules of scripts/
import check_includes

CLEAN = {
    "interpolation/blend.h": "#include <span>\n#include <immintrin.h>\n",
    "interpolation/blend.cpp": '#include "interpolation/blend.h"\n',
    "dpwa/log/log.h": "#include <string_view>\n",
    "dpwa/log/log.cpp": '#include "dpwa/log/log.h"\n#include <spdlog/spdlog.h>\n',
    "dpwa/log/line.h": '#include "dpwa/text/text.h"\n',
    "dpwa/log/CMakeLists.txt": "# Above text.\ndpwa_layer(log\n  SOURCES log.cpp\n  USES text\n  LINKS spdlog::spdlog)\n",
    "dpwa/text/text.h": "",
    "dpwa/text/CMakeLists.txt": "dpwa_layer(text SOURCES text.cpp)\n",
    "dpwa/cli/main.cpp": '#include "dpwa/log/log.h"\n#include "dpwa/text/text.h"\n',
    "dpwa/node/endpoint.h": '#include "interpolation/blend.h"\n#include <boost/asio.hpp>\n',
    "dpwa/node/CMakeLists.txt": "dpwa_layer(node SOURCES node.cpp USES interpolation)\n",
    "adapters/adapter.h": "#include <torch/types.h>\n",
    "adapters/common/flat.h": "#include <ATen/core/Tensor.h>\n",
    "adapters/gossip/gossip.h": '#include "adapters/adapter.h"\n#include "adapters/common/flat.h"\n',
    "adapters/null/null.h": '#include "adapters/adapter.h"\n#include "dpwa/log/log.h"\n',
    "adapters/collective/all.h": "",
    "adapters/collective/engine/store.h": "",
    "adapters/launch/meet.cpp": '#include "adapters/collective/engine/store.h"\n',
    "adapters/factory.cpp": '#include "adapters/gossip/gossip.h"\n#include "adapters/null/null.h"\n',
    "bench/pull.cpp": '#include "dpwa/node/endpoint.h"\n#include "interpolation/blend.h"\n',
    "bench/step/step.cpp": '#include "adapters/adapter.h"\n#include "bench/pull.cpp"\n#include <torch/types.h>\n',
    "examples/train.cpp": '#include "adapters/adapter.h"\n#include <torch/torch.h>\n',
    "test/adapters/gossip_test.cpp": "#include <torch/types.h>\n",
}

TORCH = "torch is for"
PLAIN = "write #include with a path"
NODE, ANY_LAYER, TEXT_LISTS = "dpwa/node/node.cpp", "dpwa/text/text.h", "dpwa/text/CMakeLists.txt"
# A file of the clean tree, or one more, with a text that makes one violation, and words that name it.
VIOLATIONS = [
    ("interpolation/blend.cpp", '#include "dpwa/node/endpoint.h"\n', "must not include dpwa/"),
    ("interpolation/blend.cpp", "#include <boost/core/span.hpp>\n", "no dependencies"),
    (ANY_LAYER, '#include "dpwa/log/log.h"\n', "does not state that the layer uses log"),
    (ANY_LAYER, '#include "interpolation/blend.h"\n', "layer uses interpolation"),
    (NODE, '#include "adapters/factory.cpp"\n', "must not include adapters/"),
    (NODE, "#  include <c10/core/Device.h>\n", TORCH),
    ("test/dpwa/node_test.cpp", "#include <torch/types.h>\n", TORCH),
    ("adapters/null/null.cpp", '#include "adapters/gossip/gossip.h"\n', "must not include the adapter gossip"),
    ("adapters/launch/meet.cpp", '#include "adapters/collective/all.h"\n', "must not include the adapter collective"),
    ("adapters/null/null.cpp", '#include "adapters/collective/engine/store.h"\n', "must not include the adapter"),
    ("bench/pull.cpp", '#include "adapters/adapter.h"\n', "bench/collective/ alone may include"),
    ("bench/pull.cpp", "#include <torch/types.h>\n", TORCH),
    ("adapters/other.h", '#include "adapters/null/null.h"\n', "shared header"),
    (NODE, '#include "node.h"\n', "no such .h, .cpp or .cu file"),
    (ANY_LAYER, "#include <dpwa/log/log.h>\n", "included in quotes"),
    (ANY_LAYER, "#include <dpwa/../adapters/adapter.h>\n", "included in quotes"),
    (ANY_LAYER, "#include <../log/log.h>\n", "included in quotes"),
    (NODE, '#include_next "adapters/adapter.h"\n', PLAIN),
    (NODE, '#import "adapters/adapter.h"\n', PLAIN),
    (NODE, "#define HEADER <torch/torch.h>\n#include HEADER\n", PLAIN),
    (NODE, '%:include "adapters/adapter.h"\n', PLAIN),
    (NODE, "import <torch/torch.h>;\n", PLAIN),
    (NODE, 'export import "adapters/adapter.h";\n', PLAIN),
    (NODE, "/* a */ # /* b */ include/**/<torch/torch.h> // c\n", TORCH),
    (NODE, "/* a\n b */ #include <torch/torch.h>\n", TORCH),
    (NODE, "#include \\\n<torch/torch.h>\n", ":2: torch/torch.h: torch is for"),
    (NODE, "#inc\\\nlude <torch/torch.h>\n", ":2: torch/torch.h: torch is for"),
    ("dpwa/helper.h", "", "is in the folder of a layer or in dpwa/cli/"),
    ("dpwa/extra/extra.cpp", "", "is in the folder of a layer or in dpwa/cli/"),
    (TEXT_LISTS, "dpwa_layer(text SOURCES ../log/log.cpp)\n", "is not in the folder of the layer"),
    (TEXT_LISTS, "dpwa_layer(text SOURCES text.cpp LINKS dpwa_log)\n", "a layer is stated in USES"),
    ("examples/other.cpp", '#include "test/adapters/gossip_test.cpp"\n', "must not include test/"),
]


class CheckIncludes(unittest.TestCase):
    def violations(self, **changed: str) -> list[str]:
        """Violations in the clean tree after adding or changing files."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changed}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_includes.check(Path(folder))

    def assert_one(self, file: str, text: str, what: str) -> None:
        found = self.violations(**{file: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(file, found[0])
        self.assertIn(what, found[0])

    def test_a_clean_tree_has_no_violations(self) -> None:
        self.assertEqual(self.violations(), [])

    def test_each_violation_is_named_with_its_file(self) -> None:
        for file, text, what in VIOLATIONS:
            with self.subTest(file=file, text=text):
                self.assert_one(file, text, what)

    def test_a_layer_may_not_state_one_that_it_does_not_include(self) -> None:
        for used in ("text", "interpolation"):
            with self.subTest(used):
                lists = f"dpwa_layer(net SOURCES net.cpp USES log {used})\n"
                found = self.violations(**{"dpwa/net/CMakeLists.txt": lists, "dpwa/net/net.cpp": '#include "dpwa/log/log.h"\n'})
                self.assertEqual(found, [f"dpwa/net/CMakeLists.txt: net USES {used}, and no file of the layer includes it"])

    def test_layers_may_be_stated_in_one_file(self) -> None:
        text = "dpwa_layer(text SOURCES text.cpp)\n\ndpwa_layer(more\n  SOURCES more.cpp\n  USES text)\n"
        changed = {"dpwa/CMakeLists.txt": text, "dpwa/more/more.h": '#include "dpwa/text/text.h"\n'}
        self.assertEqual(self.violations(**changed), [])
        found = self.violations(**{**changed, "dpwa/more/more.cpp": '#include "dpwa/log/log.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("dpwa/CMakeLists.txt does not state that the layer uses log", found[0])

    def test_a_layer_may_not_include_what_is_no_layer(self) -> None:
        found = self.violations(**{"dpwa/cli/app.h": "", "dpwa/log/log.h": '#include "dpwa/cli/app.h"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("dpwa/cli/ is no layer", found[0])

    def test_layers_may_not_lead_back_to_one_another(self) -> None:
        lists = "dpwa_layer(text SOURCES text.cpp USES log)\n"
        found = self.violations(**{"dpwa/text/CMakeLists.txt": lists, "dpwa/text/text.cpp": '#include "dpwa/log/log.h"\n'})
        self.assertEqual([line.split(":")[0] for line in found], ["dpwa/log/CMakeLists.txt", "dpwa/text/CMakeLists.txt"])

    def test_spdlog_and_torch_may_not_meet_even_through_a_header(self) -> None:
        header = "#include <spdlog/spdlog.h>\n"
        found = self.violations(**{"dpwa/log/log.h": header})
        self.assertEqual([line.split(":")[0] for line in found], ["adapters/factory.cpp", "adapters/null/null.h"])

    def test_a_program_that_uses_the_installation_has_our_headers_in_angle_brackets(self) -> None:
        self.assertEqual(self.violations(**{"test/install/consumer/main.cpp": "#include <dpwa/node/endpoint.h>\n"}), [])

    def test_comments_of_a_build_file_state_nothing(self) -> None:
        lists = "dpwa_layer(text\n  SOURCES text.cpp\n  USES # log\n)\n"
        source = '#include "dpwa/log/log.h"\n'
        found = self.violations(**{"dpwa/text/CMakeLists.txt": lists, "dpwa/text/text.cpp": source})
        self.assertEqual(len(found), 1, found)
        self.assertIn("does not state that the layer uses log", found[0])

    def test_other_suffixes_are_refused_whether_included_or_not(self) -> None:
        for suffix in ("hpp", "inc", "ipp", "cc", "H"):
            with self.subTest(suffix):
                self.assert_one(f"dpwa/more.{suffix}", "#include <torch/torch.h>\n", "end in .h, .cpp or .cu")
        found = self.violations(**{"dpwa/log/more.txt": "", "dpwa/log/log.h": '#include "dpwa/log/more.txt"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("no such .h, .cpp or .cu file", found[0])

    def test_arguments_that_are_no_source_tree_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            for arguments in (["--all"], ["no/such/folder"], [empty], [str(SCRIPTS.parent), "more"]):
                with self.subTest(arguments):
                    command = [sys.executable, str(SCRIPTS / "check_includes.py"), *arguments]
                    done = subprocess.run(command, capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn("usage: check_includes.py", done.stderr)


if __name__ == "__main__":
    unittest.main()
