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

    def test_interpolation_may_not_include_dpwa(self) -> None:
        self.assert_one("interpolation/blend.cpp", '#include "dpwa/node/endpoint.h"\n', "must not include dpwa/")

    def test_interpolation_may_not_include_a_third_party(self) -> None:
        self.assert_one("interpolation/blend.cpp", "#include <boost/core/span.hpp>\n", "no dependencies")

    def test_a_layer_may_include_those_that_it_states(self) -> None:
        self.assertEqual(self.violations(**{"dpwa/log/log.h": '#include "dpwa/text/text.h"\n'}), [])

    def test_a_layer_may_not_include_one_that_it_does_not_state(self) -> None:
        self.assert_one("dpwa/text/text.h", '#include "dpwa/log/log.h"\n', "does not state that the layer uses log")

    def test_a_layer_may_not_include_interpolation_without_stating_it(self) -> None:
        self.assert_one("dpwa/text/text.h", '#include "interpolation/blend.h"\n', "layer uses interpolation")

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

    def test_dpwa_may_not_include_adapters(self) -> None:
        self.assert_one("dpwa/node/node.cpp", '#include "adapters/factory.cpp"\n', "must not include adapters/")

    def test_dpwa_may_not_include_torch(self) -> None:
        self.assert_one("dpwa/node/node.cpp", "#  include <c10/core/Device.h>\n", "torch is for")

    def test_a_torch_free_test_may_not_include_torch(self) -> None:
        self.assert_one("test/dpwa/node_test.cpp", "#include <torch/types.h>\n", "torch is for")

    def test_one_adapter_may_not_include_another(self) -> None:
        self.assert_one(
            "adapters/null/null.cpp", '#include "adapters/gossip/gossip.h"\n', "must not include the adapter gossip"
        )

    def test_the_launcher_may_include_the_engine_s_store_and_no_adapter(self) -> None:
        self.assert_one(
            "adapters/launch/meet.cpp", '#include "adapters/collective/all.h"\n', "must not include the adapter collective"
        )
        self.assert_one(
            "adapters/null/null.cpp", '#include "adapters/collective/engine/store.h"\n', "must not include the adapter"
        )

    def test_of_the_benchmarks_only_two_may_include_adapters_and_torch(self) -> None:
        self.assert_one("bench/pull.cpp", '#include "adapters/adapter.h"\n', "bench/step/ and bench/collective/ alone")
        self.assert_one("bench/pull.cpp", "#include <torch/types.h>\n", "torch is for")

    def test_a_shared_adapter_header_may_not_include_one_adapter(self) -> None:
        self.assert_one("adapters/other.h", '#include "adapters/null/null.h"\n', "shared header")

    def test_spdlog_and_torch_may_not_meet_even_through_a_header(self) -> None:
        header = "#include <spdlog/spdlog.h>\n"
        found = self.violations(**{"dpwa/log/log.h": header})
        self.assertEqual([line.split(":")[0] for line in found], ["adapters/factory.cpp", "adapters/null/null.h"])

    def test_a_quoted_include_must_exist_from_the_root(self) -> None:
        self.assert_one("dpwa/node/node.cpp", '#include "node.h"\n', "no such .h, .cpp or .cu file")

    def test_our_headers_may_not_be_in_angle_brackets(self) -> None:
        for path in ("dpwa/log/log.h", "dpwa/../adapters/adapter.h", "../log/log.h"):
            with self.subTest(path):
                self.assert_one("dpwa/text/text.h", f"#include <{path}>\n", "included in quotes")

    def test_a_program_that_uses_the_installation_has_our_headers_in_angle_brackets(self) -> None:
        self.assertEqual(self.violations(**{"test/install/consumer/main.cpp": "#include <dpwa/node/endpoint.h>\n"}), [])

    def test_an_include_without_a_plain_path_is_refused(self) -> None:
        for text in (
            '#include_next "adapters/adapter.h"\n', "#include_next <torch/torch.h>\n", '#import "adapters/adapter.h"\n',
            "#define HEADER <torch/torch.h>\n#include HEADER\n", '%:include "adapters/adapter.h"\n',
            "import <torch/torch.h>;\n", 'export import "adapters/adapter.h";\n',
        ):
            with self.subTest(text):
                self.assert_one("dpwa/node/node.cpp", text, "write #include with a path")

    def test_a_comment_does_not_hide_an_include(self) -> None:
        self.assert_one("dpwa/node/node.cpp", "/* a */ # /* b */ include/**/<torch/torch.h> // c\n", "torch is for")
        self.assert_one("dpwa/node/node.cpp", "/* a\n b */ #include <torch/torch.h>\n", "torch is for")

    def test_a_directive_that_goes_on_in_the_next_line_is_read_whole(self) -> None:
        for text in ("#include \\\n<torch/torch.h>\n", "#inc\\\nlude <torch/torch.h>\n"):
            with self.subTest(text):
                self.assert_one("dpwa/node/node.cpp", text, ":2: torch/torch.h: torch is for")

    def test_all_of_dpwa_is_in_a_layer_or_the_command_line(self) -> None:
        for file in ("dpwa/helper.h", "dpwa/extra/extra.cpp"):
            with self.subTest(file):
                self.assert_one(file, "", "is in the folder of a layer or in dpwa/cli/")

    def test_a_layer_has_sources_of_its_own_folder_and_states_layers_in_uses(self) -> None:
        lists = "dpwa/text/CMakeLists.txt"
        self.assert_one(lists, "dpwa_layer(text SOURCES ../log/log.cpp)\n", "is not in the folder of the layer")
        self.assert_one(lists, "dpwa_layer(text SOURCES text.cpp LINKS dpwa_log)\n", "a layer is stated in USES")

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

    def test_nothing_but_tests_includes_tests(self) -> None:
        self.assert_one(
            "examples/other.cpp", '#include "test/adapters/gossip_test.cpp"\n', "must not include test/"
        )

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
