#include "device_pieces.hpp"

#include "party.hpp"

namespace reshard::conformance {

using nccl::test::must;

namespace {

void copy(std::span<const std::byte> from, std::span<std::byte> to, cudaMemcpyKind kind, cudaStream_t stream) {
    if (from.empty()) return;
    must(cudaMemcpyAsync(to.data(), from.data(), from.size(), kind, stream), "cudaMemcpyAsync");
}

}  // namespace

OwnStream::OwnStream() {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}
OwnStream::~OwnStream() { cudaStreamDestroy(stream_); }
void OwnStream::synchronize() const { must(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

DevicePieces::DevicePieces(Backend& backend, const InPieces& drawn, std::uint64_t salt, Index workspace_bytes)
    : bench_(drawn, backend.rank(), salt, workspace_bytes),
      noise_(bench_.bench().source.bytes),
      pattern_(bench_.bench().target.bytes),
      source_(backend.allocate(std::ssize(noise_)).value()),
      target_(backend.allocate(std::ssize(pattern_)).value()),
      workspace_(backend.allocate(workspace_bytes).value()) {
    refill();
}

Buffers DevicePieces::buffers() { return {source_->bytes(), target_->bytes(), workspace_->bytes()}; }

void DevicePieces::refill() {
    const OwnStream stream;
    bench_.bench().source.bytes = noise_;
    copy(noise_, source_->bytes(), cudaMemcpyHostToDevice, stream.get());
    copy(pattern_, target_->bytes(), cudaMemcpyHostToDevice, stream.get());
    stream.synchronize();
}

void DevicePieces::make(std::size_t piece, cudaStream_t stream) {
    bench_.make(piece);
    made_.push_back(bench_.bench().source.bytes);
    copy(made_.back(), source_->bytes(), cudaMemcpyHostToDevice, stream);
}

std::string DevicePieces::wrong(std::size_t arrived, std::size_t set_out, const OwnStream& stream) {
    copy(target_->bytes(), bench_.bench().target.bytes, cudaMemcpyDeviceToHost, stream.get());
    stream.synchronize();
    return bench_.wrong(arrived, set_out);
}

std::string DevicePieces::wrong_in_the_end(const OwnStream& stream) {
    Workbench& all = bench_.bench();
    copy(source_->bytes(), all.source.bytes, cudaMemcpyDeviceToHost, stream.get());
    copy(target_->bytes(), all.target.bytes, cudaMemcpyDeviceToHost, stream.get());
    stream.synchronize();
    return all.wrong();
}

}  // namespace reshard::conformance
