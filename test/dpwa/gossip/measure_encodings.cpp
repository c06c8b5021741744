// Measures what each encoding leaves at consensus: eight nodes in one process, in lock step, that
// encode, land and blend as nodes do over sockets, with peers drawn from a fixed seed. The same
// numbers on every machine. docs/ENCODINGS.md holds what it printed.
//   dpwa_measure_encodings          the tables
//   dpwa_measure_encodings --csv    the course of the disagreement, for scripts/plot_encodings.py
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {
namespace {

constexpr std::size_t kNodes = 8;
constexpr double kFactor = 0.5;
constexpr Codec kCodecs[] = {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8};

// Whether the own weights are rounded as the peer's were, or compared as they are.
enum class Comparison { alike, plain };

// Layers whose weights differ in size as those of networks do: elements, mean, deviation.
struct Layer {
  std::uint64_t elements;
  double mean, deviation;
};
constexpr Layer kLayers[] = {
    {32768, 0, 0.05}, {128, 0, 0.005}, {128, 1, 0.05}, {8192, 0, 0.1}, {10, 0, 0.01}};

Manifest manifest_of_layers() {
  std::vector<TensorSpec> tensors;
  for (const Layer& layer : kLayers) {
    TensorSpec tensor;
    tensor.name = std::to_string(tensors.size());
    tensor.shape = {layer.elements};
    tensors.push_back(std::move(tensor));
  }
  return Manifest(std::move(tensors));
}

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// One value an element, 0 in the gaps.
std::vector<float> drawn(const Manifest& manifest, Random& random,
                         const std::function<double(const Layer&, Random&)>& draw) {
  std::vector<float> values(manifest.total_bytes() / sizeof(float));
  for (std::size_t i = 0; i < std::size(kLayers); ++i) {
    float* layer = &values[manifest.offset_of(i) / sizeof(float)];
    for (std::uint64_t e = 0; e < kLayers[i].elements; ++e)
      layer[e] = static_cast<float>(draw(kLayers[i], random));
  }
  return values;
}

class MeasuredNode {
 public:
  explicit MeasuredNode(const Manifest& manifest)
      : manifest_(manifest),
        memory_(manifest.total_bytes()),
        parameters_(manifest, memory_.bytes()),
        store_(manifest.total_bytes(), kChunk, allocate),
        landing_(manifest, allocate) {}

  std::span<float> values() { return floats(memory_.bytes()); }

  void publish() {
    auto writer = store_.begin();
    parameters_.copy_out(writer->bytes());
    store_.publish(std::move(*writer), {});
  }

  void blend(const MeasuredNode& peer, Codec codec, Comparison comparison) {
    const auto own = store_.latest();
    const auto theirs = peer.store_.latest();
    const ByteRange range{0, manifest_.exchange_bytes()};
    const bool alike = comparison == Comparison::alike;
    landing_.begin(alike ? LandingMode::difference : LandingMode::values, own, range);
    for (std::uint64_t at = 0; at < range.length; at += kChunk) {
      const ByteRange chunk{at, std::min<std::uint64_t>(kChunk, range.length - at)};
      std::vector<std::byte> payload(payload_bytes(manifest_, codec, chunk));
      if (codec == Codec::raw) {
        std::memcpy(payload.data(), theirs->bytes().data() + at, payload.size());
      } else {
        encode_chunk(manifest_, codec, theirs->bytes(), chunk, payload);
      }
      landing_.consume(codec, chunk, payload);
    }
    if (alike) return parameters_.blend(landing_, kFactor);
    const auto landed = floats(landing_.bytes());
    const auto before = floats(own->bytes());
    for (std::size_t e = 0; e < landed.size(); ++e)
      values()[e] += static_cast<float>(kFactor) * (landed[e] - before[e]);
  }

 private:
  static constexpr std::size_t kChunk = 64 << 10;
  static AlignedBuffer allocate(std::size_t bytes) { return AlignedBuffer(bytes); }

  const Manifest& manifest_;
  AlignedBuffer memory_;
  HostParameters parameters_;
  SnapshotStore store_;
  Landing landing_;
};

using Nodes = std::vector<std::unique_ptr<MeasuredNode>>;

std::vector<double> mean_of(const Nodes& nodes) {
  std::vector<double> mean(nodes[0]->values().size());
  for (const auto& node : nodes) {
    for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += node->values()[e];
  }
  for (double& value : mean) value /= kNodes;
  return mean;
}

double norm(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Root mean square over the nodes of ||x_i - mean||, against ||mean||.
double disagreement(const Nodes& nodes) {
  const auto mean = mean_of(nodes);
  double sum = 0;
  for (const auto& node : nodes) {
    for (std::size_t e = 0; e < mean.size(); ++e) sum += std::pow(node->values()[e] - mean[e], 2);
  }
  return std::sqrt(sum / kNodes) / norm(mean);
}

struct Plan {
  double spread;    // of the nodes at the start, in deviations of their layer
  double gradient;  // of all nodes, a step
  double noise;     // of each node, a step
  int steps;
};
constexpr Plan kAlone{0.3, 0, 0, 200};
constexpr Plan kTraining{0.001, 1e-4, 1e-3, 1000};

struct Course {
  std::vector<double> disagreement;  // after every step
  double off_course = 0;             // ||mean - where the gradients lead||, against ||mean||
  double learning_rate = 1;          // how far along the gradients, of what they ask
};

Course run(const Plan& plan, Codec codec, Comparison comparison) {
  const Manifest manifest = manifest_of_layers();
  Random random(7);
  const auto base = drawn(manifest, random, [](const Layer& layer, Random& r) {
    return r.normal(layer.mean, layer.deviation);
  });
  const auto gradient = drawn(manifest, random, [&](const Layer& layer, Random& r) {
    return plan.gradient * (r.bernoulli(0.5) ? layer.deviation : -layer.deviation);
  });
  const auto spread = [](double size) {
    return [size](const Layer& layer, Random& r) { return r.normal(0, size * layer.deviation); };
  };
  Nodes nodes;
  for (std::size_t i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<MeasuredNode>(manifest));
    const auto away = drawn(manifest, random, spread(plan.spread));
    for (std::size_t e = 0; e < base.size(); ++e) nodes[i]->values()[e] = base[e] + away[e];
  }
  const auto start = mean_of(nodes);

  Course course;
  for (int step = 0; step < plan.steps; ++step) {
    for (const auto& node : nodes) node->publish();
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::vector<float> noise(base.size());
      if (plan.noise > 0) noise = drawn(manifest, random, spread(plan.noise));
      for (std::size_t e = 0; e < base.size(); ++e) nodes[i]->values()[e] += gradient[e] + noise[e];
      const std::size_t peer = (i + 1 + random.below(kNodes - 1)) % kNodes;
      nodes[i]->blend(*nodes[peer], codec, comparison);
    }
    course.disagreement.push_back(disagreement(nodes));
  }

  auto away = mean_of(nodes);
  double along = 0, asked = 0;
  for (std::size_t e = 0; e < away.size(); ++e) {
    const double wanted = plan.steps * static_cast<double>(gradient[e]);
    along += (away[e] - start[e]) * wanted;
    asked += wanted * wanted;
    away[e] -= start[e] + wanted;
  }
  course.off_course = norm(away) / norm(mean_of(nodes));
  if (asked > 0) course.learning_rate = along / asked;
  return course;
}

void print_row(Codec codec, Comparison comparison) {
  const Course alone = run(kAlone, codec, comparison);
  const Course training = run(kTraining, codec, comparison);
  std::printf("| %s%s | %.1e | %.1e | %.1e | %.1e | %.3f |\n", std::string(name_of(codec)).c_str(),
              comparison == Comparison::alike ? "" : ", own weights as they are",
              alone.disagreement.back(), alone.off_course, training.disagreement.back(),
              training.off_course, training.learning_rate);
  std::fflush(stdout);
}

void print_tables() {
  std::printf(
      "|  | disagreement | mean moved | disagreement, training | mean off course | "
      "effective learning rate |\n|---|---|---|---|---|---|\n");
  for (const Codec codec : kCodecs) print_row(codec, Comparison::alike);
  for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::int8})
    print_row(codec, Comparison::plain);
}

void print_courses() {
  std::printf("plan,encoding,step,disagreement\n");
  for (const Codec codec : kCodecs) {
    for (const bool training : {false, true}) {
      const Course course = run(training ? kTraining : kAlone, codec, Comparison::alike);
      for (std::size_t step = 0; step < std::min<std::size_t>(200, course.disagreement.size());
           ++step) {
        std::printf("%s,%s,%zu,%.6e\n", training ? "training" : "alone",
                    std::string(name_of(codec)).c_str(), step + 1, course.disagreement[step]);
      }
    }
  }
}

}  // namespace
}  // namespace dpwa

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--csv") {
    dpwa::print_courses();
  } else {
    dpwa::print_tables();
  }
}
