// libFuzzer's entry to one reader: fuzz_hlo runs the target "hlo".
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    for (const auto& target : reshard::fuzz::targets())
        if (target.name == RESHARD_FUZZ_TARGET) {
            target.run({reinterpret_cast<const char*>(bytes), size});
            return 0;
        }
    std::abort();
}
