// NCCL's calls that move bytes. They check their arguments and put operations in the order of streams.
#include <algorithm>

#include "registry.hpp"

using namespace nccl_double;

namespace {

thread_local std::vector<Operation> group;

// A connection takes memory, once per peer.
bool connect(ncclComm& own, const Operation& operation) {
    std::set<int> fresh;
    if (operation.collective) {
        for (int peer = 0; peer < own.clique->ranks; ++peer) fresh.insert(peer);
    }
    for (const Message& message : operation.messages) fresh.insert(message.peer);
    for (const int peer : fresh) {
        if (own.peers.contains(peer)) continue;
        if (!reserve(own, peer_bytes)) return false;
        own.peers.insert(peer);
    }
    return true;
}

ncclResult_t put(const Operation& operation) {
    ncclComm& own = *operation.communicator;
    if (!connect(own, operation)) return ncclUnhandledCudaError;
    auto* copy = new Operation(operation);
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(operation.stream, &capturing);
    if (capturing == cudaStreamCaptureStatusNone) {
        copy->number = own.issued++;
        ++own.open;
        gpu_double_enqueue(
            operation.stream, [](void* one) { run(*static_cast<Operation*>(one)); }, copy,
            [](void* one) { delete static_cast<Operation*>(one); });
    } else {
        gpu_double_enqueue(
            operation.stream,
            [](void* one) {
                Operation& replayed = *static_cast<Operation*>(one);
                ++replayed.communicator->open;
                run(replayed);
            },
            copy, [](void* one) { delete static_cast<Operation*>(one); });
    }
    return ncclSuccess;
}

// Messages of one communicator and stream become one operation. Collectives keep their place.
std::vector<Operation> fused(std::vector<Operation> issued) {
    std::vector<Operation> operations;
    for (Operation& one : issued) {
        const auto fits = [&](const Operation& other) {
            return !other.collective && other.communicator == one.communicator && other.stream == one.stream;
        };
        const auto found = one.collective ? operations.end() : std::ranges::find_if(operations, fits);
        if (found != operations.end()) {
            found->messages.insert(found->messages.end(), one.messages.begin(), one.messages.end());
        } else {
            operations.push_back(std::move(one));
        }
    }
    return operations;
}

// A non-blocking communicator may be slow: its work appears only after enough queries.
ncclResult_t flush() {
    const std::vector<Operation> operations = fused(std::exchange(group, {}));
    const ncclResult_t error = take_group_error();
    if (error != ncclSuccess) return error;
    ncclResult_t result = ncclSuccess;
    std::map<ncclComm*, std::vector<Operation>> later;
    for (const Operation& operation : operations) {
        ncclComm* own = operation.communicator.get();
        if (!own->blocking && (later.contains(own) || gpu_double_draw(2) == 0)) {
            later[own].push_back(operation);
        } else if (const ncclResult_t done = put(operation); done != ncclSuccess) {
            result = done;
        }
    }
    for (const auto& entry : later) {
        ncclComm* const own = entry.first;
        if (result == ncclSuccess) result = ncclInProgress;
        own->in_progress = [own, polls = gpu_double_draw(3), waiting = entry.second]() mutable {
            if (polls-- > 0) return false;
            for (const Operation& operation : waiting) {
                if (put(operation) != ncclSuccess) own->failure = ncclUnhandledCudaError;
            }
            return true;
        };
    }
    return result;
}

ncclResult_t collective(const char* name, Part part, ncclComm_t handle, cudaStream_t stream, std::size_t sent,
                        std::size_t received) {
    count_call(name);
    const auto own = find(handle);
    if (const auto error = usable(own); error != ncclSuccess) return error;
    const std::size_t bytes = part.count * bytes_of(part.type);
    const auto ranks = static_cast<std::size_t>(own->clique->ranks);
    sent = bytes * (sent == 0 ? 1 : ranks);
    received = bytes * (received == 0 ? 1 : ranks);
    if (!is_ours(*own, part.send, sent) || !is_ours(*own, part.receive, received)) {
        return refused(ncclInvalidArgument, "a collective's buffer is not memory of its device");
    }
    if (part.count == 0) return ncclSuccess;
    group.push_back({own, stream, true, part, {}, -1});
    return in_group() ? ncclSuccess : flush();
}

ncclResult_t message(Message one, const void* address, int peer, ncclComm_t handle, cudaStream_t stream) {
    count_call(one.sends ? "ncclSend" : "ncclRecv");
    const auto own = find(handle);
    if (const auto error = usable(own); error != ncclSuccess) return error;
    if (peer < 0 || peer >= own->clique->ranks) return refused(ncclInvalidArgument, "there is no such peer");
    if (!is_ours(*own, address, one.bytes)) {
        return refused(ncclInvalidArgument, "a message's buffer is not memory of its device");
    }
    if (one.bytes == 0) return ncclSuccess;
    group.push_back({own, stream, false, {}, {one}, -1});
    return in_group() ? ncclSuccess : flush();
}

}  // namespace

extern "C" {

ncclResult_t ncclGroupStart() {
    begin_group();
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    const int open = end_group();
    if (open < 0) return refused(ncclInvalidUsage, "a group ends that was not begun");
    return open > 0 ? ncclSuccess : flush();
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return message({true, peer, from, nullptr, count * bytes_of(type)}, from, peer, communicator, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return message({false, peer, nullptr, to, count * bytes_of(type)}, to, peer, communicator, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
    return collective("ncclAllGather", {Call::all_gather, count, type, ncclSum, from, to}, communicator, stream, 0, 1);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t communicator, cudaStream_t stream) {
    return collective("ncclReduceScatter", {Call::reduce_scatter, count, type, op, from, to}, communicator, stream, 1,
                      0);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t communicator, cudaStream_t stream) {
    return collective("ncclAllReduce", {Call::all_reduce, count, type, op, from, to}, communicator, stream, 0, 0);
}
ncclResult_t ncclAlltoAll(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                          cudaStream_t stream) {
    return collective("ncclAlltoAll", {Call::all_to_all, count, type, ncclSum, from, to}, communicator, stream, 1, 1);
}
}
