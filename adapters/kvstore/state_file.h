#pragma once

#include <filesystem>

#include "dpwa/kvstore/saved_states.h"

namespace dpwa::kvstore {

// Replaces the file as a whole, or leaves it as it is. Throws std::runtime_error that names it.
void write_states(const std::filesystem::path& file, const SavedStates& states);
// Throws std::runtime_error that names the file when it cannot be read, and KVStoreError with what
// is wrong with its content.
SavedStates read_states(const std::filesystem::path& file);

}  // namespace dpwa::kvstore
