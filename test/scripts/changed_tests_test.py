"""Which tests a change can reach."""

import unittest

import scripts_path  # noqa: F401
from changed_tests import REPOSITORY, Build, Test, reaches

BUILD = Build(
    objects={"a.o": {"dpwa/rules/a.cpp", "dpwa/rules/a.h"}, "a_test.o": {"test/a_test.cpp", "dpwa/rules/a.h"},
             "b_test.o": {"test/b_test.cpp"}, "main.o": {"dpwa/main.cpp", "dpwa/rules/a.h"}},
    linked={"test/unit": {"a.o", "a_test.o", "b_test.o"}, "test/other": {"b_test.o"}, "bin/dpwa": {"main.o"}})
UNIT = Test(["/build/test/unit", "--source-file=*test/a_test.cpp"], ["unit"], ["test/unit"])
OTHER = Test(["/build/test/other", "--test-case=x"], ["process"], ["test/other"])
SCRIPT = Test(["python3", f"{REPOSITORY}/test/scripts/x_test.py"], ["scripts"], ["bin/dpwa"])
FAULTS = Test(["python3", f"{REPOSITORY}/test/faults/campaign.py"], ["faults"])
INSTALL = Test(["cmake"], ["install"])


def reached(*changed: str) -> list[Test]:
    return [test for test in (UNIT, OTHER, SCRIPT, FAULTS, INSTALL) if reaches(test, BUILD, list(changed))]


class ChangedTests(unittest.TestCase):
    def test_a_source_reaches_the_programs_that_are_linked_from_it(self) -> None:
        self.assertEqual(reached("dpwa/rules/a.cpp"), [UNIT, INSTALL])
        self.assertEqual(reached("dpwa/main.cpp"), [SCRIPT, FAULTS, INSTALL])

    def test_a_header_reaches_all_that_include_it(self) -> None:
        self.assertEqual(reached("dpwa/rules/a.h"), [UNIT, SCRIPT, FAULTS, INSTALL])

    def test_the_source_of_a_test_reaches_that_test_where_each_has_its_own(self) -> None:
        self.assertEqual(reached("test/a_test.cpp"), [UNIT, INSTALL])
        self.assertEqual(reached("test/b_test.cpp"), [OTHER, INSTALL])

    def test_scripts_and_what_they_read_reach_the_tests_of_scripts(self) -> None:
        self.assertEqual(reached("docs/TOUR.md"), [SCRIPT])
        self.assertEqual(reached("test/faults/run.py"), [FAULTS])

    def test_how_it_is_built_reaches_everything(self) -> None:
        for path in ("dpwa/CMakeLists.txt", "cmake/DpwaSettings.cmake", "scripts/build.sh"):
            self.assertEqual(len(reached(path)), 5)

    def test_nothing_reaches_nothing(self) -> None:
        self.assertEqual(reached(), [])
        self.assertEqual(reached(".gitignore"), [])


if __name__ == "__main__":
    unittest.main()
