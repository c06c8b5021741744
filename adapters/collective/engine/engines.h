#pragma once

#include <memory>
#include <string>

#include "adapters/collective/engine/engine.h"

// What each engine's source defines; CMake takes the stub NAME_absent.cpp where the engine cannot
// be built. absent(): why; empty where the engine is there. make(): null where it is not.

namespace dpwa::collective::gloo_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::gloo_engine

namespace dpwa::collective::nccl_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::nccl_engine

namespace dpwa::collective::mpi_engine {
std::string absent();
std::unique_ptr<Engine> make();
}  // namespace dpwa::collective::mpi_engine
