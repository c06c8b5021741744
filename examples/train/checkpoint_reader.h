#pragma once

#include <filesystem>
#include <string>

namespace dpwa::train {

// The body of the checkpoint file at `path`. Throws DamagedCheckpoint for what is surely not a
// whole checkpoint: something else than a regular file, or bytes that are not one, found before
// memory is taken for more than the file's header allows. Throws UsageError naming the file when
// it cannot be opened or read, for it may be sound, and std::runtime_error naming it when there
// is no memory for it.
std::string read_checkpoint(const std::filesystem::path& path);

}  // namespace dpwa::train
