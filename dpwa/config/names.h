#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa::config {

// A word of a cluster file and the value that it stands for.
template <class Value>
struct Word {
  const char* name;
  Value value;
};

// Each list is in the order in which an error line gives it.
inline constexpr Word<Backend> backend_words[] = {{"gossip", Backend::gossip},
                                                  {"collective", Backend::collective},
                                                  {"kvstore", Backend::kvstore},
                                                  {"null", Backend::null}};
inline constexpr Word<BlendMode> blend_words[] = {{"delta", BlendMode::delta},
                                                  {"lerp", BlendMode::lerp}};
inline constexpr Word<DistancePolicy> distance_words[] = {{"off", DistancePolicy::off},
                                                          {"warn", DistancePolicy::warn},
                                                          {"clip", DistancePolicy::clip},
                                                          {"refuse", DistancePolicy::refuse}};
inline constexpr Word<CollectiveEngine> engine_words[] = {{"auto", CollectiveEngine::automatic},
                                                          {"dpwa", CollectiveEngine::dpwa},
                                                          {"gloo", CollectiveEngine::gloo},
                                                          {"nccl", CollectiveEngine::nccl},
                                                          {"mpi", CollectiveEngine::mpi}};
inline constexpr Word<GradientCompression> compression_words[] = {
    {"none", GradientCompression::none},
    {"fp16", GradientCompression::fp16},
    {"bf16", GradientCompression::bf16}};
inline constexpr Word<OnLostRank> on_lost_rank_words[] = {
    {"stop", OnLostRank::stop}, {"shrink", OnLostRank::shrink}, {"gossip", OnLostRank::gossip}};
inline constexpr Word<Minority> minority_words[] = {{"stop", Minority::stop},
                                                    {"gossip", Minority::gossip}};

inline constexpr Word<KvstoreType> kvstore_type_words[] = {
    {"dist_sync", KvstoreType::dist_sync},
    {"dist_async", KvstoreType::dist_async},
    {"dist_ssp", KvstoreType::dist_ssp},
    {"local_update_cpu", KvstoreType::local_update_cpu},
    {"local_allreduce_cpu", KvstoreType::local_allreduce_cpu},
    {"local_allreduce_device", KvstoreType::local_allreduce_device}};
// MXNet's names, which are read and never printed.
inline constexpr Word<KvstoreType> kvstore_type_aliases[] = {
    {"local", KvstoreType::local_update_cpu},
    {"device", KvstoreType::local_allreduce_device},
    {"dist_sync_device", KvstoreType::dist_sync},
    {"dist_device_sync", KvstoreType::dist_sync}};
inline constexpr Word<KvstoreUpdate> kvstore_update_words[] = {{"auto", KvstoreUpdate::automatic},
                                                               {"server", KvstoreUpdate::server},
                                                               {"worker", KvstoreUpdate::worker}};
inline constexpr Word<kvstore::Compression> kvstore_compression_words[] = {
    {"none", kvstore::Compression::none},
    {"fp16", kvstore::Compression::fp16},
    {"2bit", kvstore::Compression::two_bit}};

inline constexpr Word<Codec> encoding_words[] = {
    {"fp32", Codec::raw}, {"fp16", Codec::fp16}, {"bf16", Codec::bf16}, {"int8", Codec::int8}};
inline constexpr Word<bool> join_words[] = {{"open", true}, {"closed", false}};
inline constexpr Word<bool> same_host_words[] = {{"auto", true}, {"off", false}};
inline constexpr Word<bool> on_off_words[] = {{"on", true}, {"off", false}};

template <class Value, std::size_t count>
constexpr const char* name_in(const Word<Value> (&words)[count], Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.name;
  }
  return "";
}

// All of them.
template <class Value, std::size_t count>
std::vector<std::string> names_in(const Word<Value> (&words)[count]) {
  std::vector<std::string> names;
  for (const Word<Value>& word : words) names.emplace_back(word.name);
  return names;
}

constexpr const char* name_of(Backend backend) {
  return name_in(backend_words, backend);
}
constexpr const char* name_of(CollectiveEngine engine) {
  return name_in(engine_words, engine);
}

}  // namespace dpwa::config
