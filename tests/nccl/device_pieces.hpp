// A bench of pieces whose tiles lie on the device: made by copies on a stream, seen by copies back.
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
    /// The target holds the pattern again and the source noise, from the start.
    void refill();
    /// The source of the piece comes to hold what it should, on the stream; before, it holds noise.
    void make(std::size_t piece, cudaStream_t stream);
    /// As PieceBench::wrong, of what the target holds once all is done that is on the stream now.
    [[nodiscard]] std::string wrong(std::size_t arrived, std::size_t set_out, const OwnStream& stream);
    /// Of source and target as a whole, after a run.
    [[nodiscard]] std::string wrong_in_the_end(const OwnStream& stream);

private:
    PieceBench bench_;
    std::vector<std::vector<std::byte>> made_;  // a source for each piece that was made: copies may still read it
    std::vector<std::byte> noise_;
    std::vector<std::byte> pattern_;
    std::unique_ptr<Memory> source_;
    std::unique_ptr<Memory> target_;
    std::unique_ptr<Memory> workspace_;
};

}  // namespace reshard::conformance
