#include "test/dpwa/collectives/numbers.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "dpwa/base/random.h"

namespace dpwa::test {

using collectives::Reduction;

namespace {

template <typename Number>
void append(std::vector<std::byte>& bytes, Number number) {
  const auto* first = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), first, first + sizeof number);
}

// Of whole numbers from 0 to 2048.
std::uint16_t half_bits(int number) {
  if (number == 0) return 0;
  const int exponent = std::bit_width(static_cast<unsigned>(number)) - 1;
  const int fraction = (number - (1 << exponent)) << (10 - exponent);
  return static_cast<std::uint16_t>((exponent + 15) << 10 | fraction);
}

std::uint16_t brain_bits(int number) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16);
}

}  // namespace

std::vector<int> small_numbers(std::size_t count, int rank) {
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 5 + i / 11) % 3);
  return numbers;
}

std::vector<std::byte> as_type(DType type, const std::vector<int>& numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) {
    switch (type) {
      case DType::float32:
        append(bytes, static_cast<float>(number));
        break;
      case DType::float64:
        append(bytes, static_cast<double>(number));
        break;
      case DType::float16:
        append(bytes, half_bits(number));
        break;
      case DType::bfloat16:
        append(bytes, brain_bits(number));
        break;
      case DType::int64:
        append(bytes, static_cast<std::int64_t>(number));
        break;
      case DType::int32:
        append(bytes, static_cast<std::int32_t>(number));
        break;
      case DType::int16:
        append(bytes, static_cast<std::int16_t>(number));
        break;
      case DType::int8:
      case DType::uint8:
        append(bytes, static_cast<std::uint8_t>(number));
        break;
      case DType::boolean:
        append(bytes, static_cast<std::uint8_t>(number != 0 ? 1 : 0));
        break;
    }
  }
  return bytes;
}

std::vector<int> combined(Reduction reduction, DType type, std::size_t count, int size) {
  std::vector<int> result;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<int> numbers = small_numbers(count, rank);
    if (type == DType::boolean) {
      for (int& number : numbers) number = std::min(number, 1);
    }
    if (rank == 0) result = numbers;
    for (std::size_t i = 0; i < count && rank > 0; ++i) {
      int& value = result[i];
      if (reduction == Reduction::sum) {
        value += numbers[i];
      } else {
        value =
            reduction == Reduction::min ? std::min(value, numbers[i]) : std::max(value, numbers[i]);
      }
    }
  }
  return result;
}

std::vector<std::byte> any_floats(std::size_t count, int rank) {
  Random random(derive_seed(7, {static_cast<std::uint64_t>(rank)}));
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i)
    append(bytes, static_cast<float>(random.uniform(-1e6, 1e6)));
  return bytes;
}

}  // namespace dpwa::test
