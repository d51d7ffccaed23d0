// A bench of pieces with its tiles on the device. Copies on a stream make them, and copies back check them.
#pragma once

#include "conformance/pieces/drawn.hpp"
#include "reshard/backends/nccl.hpp"

namespace reshard::conformance {

/// A stream of a test.
class OwnStream {
public:
    OwnStream();
    ~OwnStream();
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    [[nodiscard]] cudaStream_t get() const { return stream_; }
    void synchronize() const;

private:
    cudaStream_t stream_ = nullptr;
};

class DevicePieces {
public:
    DevicePieces(Backend& backend, const InPieces& drawn, std::uint64_t salt, Index workspace_bytes);

    [[nodiscard]] Buffers buffers();
    /// Fills the target with the pattern and the source with noise again.
    void refill();
    /// Fills the source of the piece with its values, on the stream. Before, it holds noise.
    void make(std::size_t piece, cudaStream_t stream);
    /// As PieceBench::wrong, for the target after all work that is on the stream now.
    [[nodiscard]] std::string wrong(std::size_t arrived, std::size_t set_out, const OwnStream& stream);
    /// The fault of the whole source and target after a run.
    [[nodiscard]] std::string wrong_in_the_end(const OwnStream& stream);

private:
    PieceBench bench_;
    std::vector<std::vector<std::byte>> made_;  // one source per piece made, because copies may still read it
    std::vector<std::byte> noise_;
    std::vector<std::byte> pattern_;
    std::unique_ptr<Memory> source_;
    std::unique_ptr<Memory> target_;
    std::unique_ptr<Memory> workspace_;
};

}  // namespace reshard::conformance
