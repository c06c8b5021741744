#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "examples/svi/options.h"
#include "examples/svi/table.h"
#include "test/support/temporary_directory.h"

// The parts of dpwa-svi without torch.
namespace dpwa::svi {
namespace {

using test::has;

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"dpwa-svi", "--config", "c.yaml"});
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

// The error for a file with this text.
std::string csv_error(const std::string& text) {
  const test::TemporaryDirectory dir;
  test::write_text(dir / "t.csv", text);
  const std::string error = test::message_of<ConfigError>([&] { read_csv(dir / "t.csv"); });
  const auto name = error.find("t.csv");
  return name == std::string::npos ? error : error.substr(name);
}

}  // namespace

TEST_CASE("svi options: words, defaults, and one line for what is not accepted") {
  const ParsedOptions parsed = parse(
      {"--data", "synthetic", "--posterior", "full", "--exchange", "parameters", "--hidden", "0"});
  REQUIRE_MESSAGE(parsed.run, parsed.text);
  CHECK(parsed.options.posterior == PosteriorKind::full);
  CHECK(parsed.options.exchange == ExchangeKind::parameters);
  CHECK(parsed.options.hidden == 0);
  CHECK(parsed.options.steps == 2000);

  const std::vector<std::vector<const char*>> wrong = {
      {"--data", "mnist"}, {"--posterior", "gaussian"}, {"--lr", "0"}, {"--draws", "0"},
      {"--steps", "x"},    {"--exchange", "both"}};
  for (const auto& arguments : wrong) {
    const ParsedOptions refused = parse(arguments);
    CHECK(refused.exit_code == 2);
    CHECK(std::ranges::count(refused.text, '\n') == 1);
    CHECK(has(refused.text, "accepted: "));
  }
  const ParsedOptions no_folder = parse({"--data", "engel"});
  CHECK(no_folder.exit_code == 2);
  CHECK(has(no_folder.text, "--data engel needs --data-dir"));
}

TEST_CASE("a table is read from CSV, and what is no table is refused with file, line and column") {
  const test::TemporaryDirectory dir;
  test::write_text(dir / "t.csv", "\"x\",\"y\"\r\n1, 2.5\r\n\n-3e1,4\n");
  const Table table = read_csv(dir / "t.csv");
  CHECK(table.columns == std::vector<std::string>{"x", "y"});
  CHECK(table.values == std::vector<double>{1, 2.5, -30, 4});

  CHECK(csv_error("x,y\n1,2\n3,nan\n") ==
        "t.csv:3: column 'y': 'nan' is not accepted; accepted: a finite number");
  CHECK(csv_error("x,y\n1,2\n3\n") == "t.csv:3: 1 values; accepted: 2");
  CHECK(csv_error("x,y\n1,2\n3,\n") ==
        "t.csv:3: column 'y': '' is not accepted; accepted: a finite number");
  CHECK(csv_error("1,2\n3,4\n5,6\n") ==
        "t.csv:1: numbers in place of names; accepted: a line of names, then lines of numbers");
  CHECK(csv_error("") ==
        "t.csv: the file is empty; accepted: a line of names and at least two rows");
  test::write_text(dir / "t.csv", "\xEF\xBB\xBFx,y\n1,2\n3,4\n");
  CHECK(read_csv(dir / "t.csv").columns == std::vector<std::string>{"x", "y"});
  CHECK(csv_error("y\n1\n") ==
        "t.csv:1: one column; accepted: at least one input, then the output");
  CHECK(csv_error("x,y\n1,2\n") ==
        "t.csv:2: no data; accepted: a line of names and at least two rows");
}

TEST_CASE(
    "a fifth of the rows is for testing, the same on every node, and each row is in one part") {
  const Table all = make_synthetic(3);
  CHECK(all.rows() == 300);
  const Parts parts = split_rows(all, 3);
  CHECK(parts.test.rows() == 60);
  CHECK(parts.train.rows() == 240);
  CHECK(split_rows(all, 3).test.values == parts.test.values);
  CHECK(split_rows(all, 4).test.values != parts.test.values);
  auto both = parts.train.values, sorted = all.values;
  both.insert(both.end(), parts.test.values.begin(), parts.test.values.end());
  std::ranges::sort(both);
  std::ranges::sort(sorted);
  CHECK(both == sorted);
}

TEST_CASE("standardised columns have mean 0 and deviation 1, and a constant one stays constant") {
  const Table table{{"x", "one", "y"}, {1, 1, 10, 2, 1, 20, 3, 1, 30}};
  const Scale scale = scale_of(table);
  CHECK(scale.sd[1] == 1);
  const Table standard = standardised(table, scale);
  const Scale again = scale_of(standard);
  for (const std::size_t column : {0, 2}) {
    CHECK(std::abs(again.mean[column]) < 1e-12);
    CHECK(again.sd[column] == doctest::Approx(1));
  }
  CHECK(standard.at(0, 1) == 0);
  CHECK(standard.at(2, 1) == 0);
}

}  // namespace dpwa::svi
