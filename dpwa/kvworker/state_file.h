#pragma once

#include <filesystem>
#include <functional>

#include "dpwa/kvstore/saved_states.h"

namespace dpwa::kvstore {

// Replaces the file as a whole, or leaves it as it is. Throws std::runtime_error that names it.
void write_states(const std::filesystem::path& file, const SavedStates& states);
// Gives what it holds to `load`. Throws std::runtime_error that names the file when it cannot be
// read, and KVStoreError that does when it is damaged, or where `load` throws one.
void load_states(const std::filesystem::path& file,
                 const std::function<void(const SavedStates&)>& load);

}  // namespace dpwa::kvstore
