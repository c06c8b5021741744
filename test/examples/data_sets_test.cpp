#include <doctest/doctest.h>
#include <zlib.h>

#include <set>

#include "dpwa/config/config.h"
#include "examples/train/data_sets.h"
#include "examples/train/files.h"
#include "test/support/temporary_directory.h"

using namespace dpwa::train;
using namespace dpwa;
using Bytes = std::vector<std::uint8_t>;

namespace {

const Bytes good{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

std::string refusal(const Bytes& bytes) {
  return test::message_of<ConfigError>([&] { train::parse_idx(bytes, "the-file"); });
}

std::string big_endian(unsigned value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string images(unsigned count, unsigned side = 28) {
  return std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(side) + big_endian(side) +
         std::string(count * side * side, '\x11');
}

std::string labels(const std::string& values) {
  return std::string("\0\0\x08\x01", 4) + big_endian(static_cast<unsigned>(values.size())) + values;
}

void write_gz(const std::filesystem::path& file, const std::string& text) {
  gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
}

struct Mnist {
  test::TemporaryDirectory dir;
  Mnist() {
    test::write_text(dir / "train-images-idx3-ubyte", images(3));
    write_gz(dir / "train-labels-idx1-ubyte.gz", labels({0, 9, 4}));
    write_gz(dir / "t10k-images-idx3-ubyte.gz", images(2));
    test::write_text(dir / "t10k-labels-idx1-ubyte", labels({1, 2}));
  }
  std::string refusal() const {
    return test::message_of<ConfigError>([this] { train::load_mnist(dir.path()); });
  }
};

}  // namespace

TEST_CASE("a batch holds the chosen images, normalised per channel, and their labels") {
  Dataset data;
  data.channels = 2;
  data.height = 1;
  data.width = 2;
  data.pixels = {0, 255, 51, 102, 1, 2, 3, 4};
  data.labels = {7, 3};
  data.mean = {0.5F, 0.2F};
  data.deviation = {0.25F, 0.1F};
  const std::vector<std::uint32_t> samples{1, 0};
  std::vector<float> pixels(8);
  std::vector<std::int64_t> labels(2);
  fill_batch(data, samples, pixels, labels);
  CHECK(labels == std::vector<std::int64_t>{3, 7});
  CHECK(pixels[4] == doctest::Approx(-2));               // (0 - .5) / .25
  CHECK(pixels[5] == doctest::Approx(2));                // (1 - .5) / .25
  CHECK(pixels[6] == doctest::Approx(0).epsilon(1e-6));  // (.2 - .2) / .1
  CHECK(pixels[7] == doctest::Approx(2));                // (.4 - .2) / .1
  CHECK(pixels[0] == doctest::Approx((1 / 255.0 - 0.5) / 0.25));
}

TEST_CASE("the synthetic set is the same for the same seed and another for another") {
  const TrainTest one = make_synthetic(1);
  CHECK(one.train.pixels == make_synthetic(1).train.pixels);
  CHECK(one.train.pixels != make_synthetic(2).train.pixels);
  CHECK(one.train.size() == 12000);
  CHECK(one.test.size() == 2000);
  CHECK(one.train.pixels.size() == one.train.size() * 28 * 28);
  CHECK(std::set<int>(one.train.labels.begin(), one.train.labels.end()).size() == 10);
  CHECK(one.test.pixels != std::vector<std::uint8_t>(one.train.pixels.begin(),
                                                     one.train.pixels.begin() + 2000 * 28 * 28));
}

TEST_CASE("the synthetic set is normalised to about zero mean and unit deviation") {
  const Dataset data = make_synthetic(3).train;
  double sum = 0;
  double squares = 0;
  for (const std::uint8_t pixel : data.pixels) {
    const double value = (pixel / 255.0 - data.mean[0]) / data.deviation[0];
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(data.pixels.size());
  CHECK(std::abs(sum / count) < 0.3);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.4));
}

TEST_CASE("an IDX file gives its dimensions and elements") {
  const auto tensor = train::parse_idx(good, "the-file");
  CHECK(tensor.dimensions == std::vector<std::size_t>{2, 3});
  CHECK(tensor.elements == Bytes{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a broken IDX file is refused in one line naming the file and what is wrong") {
  Bytes bytes = good;
  std::string expected;
  SUBCASE("ends in the header") {
    bytes.resize(9), expected = "shorter than its header";
  }
  SUBCASE("wrong magic") {
    bytes[1] = 1, expected = "two zero bytes";
  }
  SUBCASE("floats") {
    bytes[2] = 0x0D, expected = "element type 13; accepted: 8";
  }
  SUBCASE("no dimension") {
    bytes[3] = 0, expected = "0 dimensions; accepted: 1 to 4";
  }
  SUBCASE("too many dimensions") {
    bytes[3] = 5, expected = "5 dimensions";
  }
  SUBCASE("an empty dimension") {
    bytes[7] = 0, expected = "a dimension is 0";
  }
  SUBCASE("oversized") {
    bytes.push_back(0), expected = "announces 6 elements, it holds 7";
  }
  SUBCASE("a size that would overflow") {
    for (const std::size_t at : {4, 5, 6, 7, 8, 9, 10, 11}) bytes[at] = 0xFF;
    expected = "too many elements";
  }
  const std::string why = refusal(bytes);
  CAPTURE(why);
  CHECK(test::has(why, "the-file: "));
  CHECK(test::has(why, expected));
  CHECK_FALSE(test::has(why, "\n"));
}

TEST_CASE("an IDX file cut at any byte is refused, never read beyond its end") {
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(refusal(cut).empty());
  }
}

TEST_CASE_FIXTURE(Mnist, "MNIST files are read plain or compressed") {
  const auto data = train::load_mnist(dir.path());
  CHECK(data.train.size() == 3);
  CHECK(data.train.labels == std::vector<std::uint8_t>{0, 9, 4});
  CHECK(data.train.pixels == std::vector<std::uint8_t>(3 * 28 * 28, 0x11));
  CHECK(data.test.size() == 2);
}

TEST_CASE_FIXTURE(Mnist, "MNIST files are found in a folder mnist of the data directory") {
  std::filesystem::create_directory(dir / "data");
  std::filesystem::create_directory(dir / "data/mnist");
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    if (entry.is_regular_file())
      std::filesystem::copy(entry.path(), dir / "data/mnist" / entry.path().filename());
  CHECK(train::load_mnist(dir / "data").test.size() == 2);
}

TEST_CASE_FIXTURE(Mnist, "a wrong MNIST file is refused by name") {
  std::string expected;
  SUBCASE("missing test set") {
    std::filesystem::remove(dir / "t10k-images-idx3-ubyte.gz");
    expected = "neither t10k-images-idx3-ubyte nor t10k-images-idx3-ubyte.gz is in";
  }
  SUBCASE("a label out of range") {
    test::write_text(dir / "t10k-labels-idx1-ubyte", labels({1, 10}));
    expected = "t10k-labels-idx1-ubyte: label 10; accepted: 0 to 9";
  }
  SUBCASE("fewer labels than images") {
    test::write_text(dir / "t10k-labels-idx1-ubyte", labels({1}));
    expected = "t10k-labels-idx1-ubyte: 1 labels for 2 images";
  }
  SUBCASE("images of another size") {
    test::write_text(dir / "train-images-idx3-ubyte", images(3, 32));
    expected = "train-images-idx3-ubyte: does not hold images of 28 x 28 pixels";
  }
  SUBCASE("a compressed file cut off") {
    const auto file = dir / "train-labels-idx1-ubyte.gz";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 6);
    expected = "train-labels-idx1-ubyte.gz: ";
  }
  SUBCASE("a compressed file with a flipped bit") {
    const auto file = dir / "t10k-images-idx3-ubyte.gz";
    std::string bytes = test::read_text(file);
    bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 4);
    test::write_text(file, bytes);
    expected = "t10k-images-idx3-ubyte.gz: ";
  }
  const std::string why = refusal();
  CAPTURE(why);
  REQUIRE_FALSE(expected.empty());
  CHECK(test::has(why, expected));
  CHECK_FALSE(test::has(why, "\n"));
}

TEST_CASE("a file above the limit is refused before it is read whole") {
  const test::TemporaryDirectory dir;
  write_gz(dir / "zeros.gz", std::string(5'000'000, '\0'));
  CHECK(test::has(test::message_of<ConfigError>([&] { train::read_file(dir / "zeros.gz", 1000); }),
                  "zeros.gz: holds more than 1000 bytes"));
  CHECK(train::read_file(dir / "zeros.gz", 5'000'000).size() == 5'000'000);
}

TEST_CASE("CIFAR-10 batches are read in order and checked") {
  const test::TemporaryDirectory dir;
  const auto record = [](char label) { return label + std::string(3072, label); };
  for (char batch = 1; batch <= 5; ++batch)
    test::write_text(dir / ("data_batch_" + std::to_string(batch) + ".bin"),
                     record(batch) + record(0));
  test::write_text(dir / "test_batch.bin", record(9));
  const auto data = train::load_cifar10(dir.path());
  CHECK(data.train.labels == std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0});
  CHECK(data.train.pixels[2 * 3072] == 2);
  CHECK(data.test.size() == 1);
  CHECK(data.test.image_size() == 3072);

  const auto refusal = [&] {
    return test::message_of<ConfigError>([&] { train::load_cifar10(dir.path()); });
  };
  test::write_text(dir / "test_batch.bin", record(9) + "x");
  CHECK(test::has(refusal(), "test_batch.bin: 3074 bytes; accepted: 1 to 10000 records"));
  test::write_text(dir / "test_batch.bin", record(10));
  CHECK(test::has(refusal(), "test_batch.bin: label 10; accepted: 0 to 9"));
  std::filesystem::remove(dir / "data_batch_3.bin");
  CHECK(test::has(refusal(), "data_batch_3.bin"));
}
