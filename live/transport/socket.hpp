// Sockets. Streams connect the ranks of a group; packets connect the two jobs, and may carry a descriptor.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::live {

using Clock = std::chrono::steady_clock;

/// The milliseconds until `end` for poll(), at least 0.
[[nodiscard]] int milliseconds_until(Clock::time_point end);

/// Owns a descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool is_open() const { return number_ >= 0; }

private:
    int number_ = -1;
};

/// The error of a system call that has just failed: cannot `what`: why.
[[nodiscard]] tl::unexpected<Error> cannot(const std::string& what);

enum class Kind { stream, packets };

/// A socket that listens. A Unix socket's path is free again when it is destroyed.
class Listener {
public:
    /// An endpoint is a path, which has a `/`, or `host:port` for streams. A path that no process listens at any more
    /// is taken over. Errors: usage (neither), backend (another process listens there, or the system refuses).
    [[nodiscard]] static Result<Listener> open(const std::string& endpoint, Kind kind);
    Listener(Listener&&) noexcept = default;
    Listener& operator=(Listener&&) noexcept = default;
    ~Listener();

    [[nodiscard]] int number() const { return descriptor_.number(); }
    [[nodiscard]] Descriptor accept() const;  ///< not open if nobody waits
    [[nodiscard]] int port() const;           ///< of `host:port`, where port 0 takes a free one; 0: of a path

private:
    Listener(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
    Descriptor descriptor_;
    std::string path_;  // to remove; empty: none
};

/// Connects to a listener, which may come later. Errors: usage (the endpoint), backend (nobody listens within `limit`).
[[nodiscard]] Result<Descriptor> connect_to(const std::string& endpoint, Kind kind, Clock::time_point end);

/// Sends all bytes of a frame with its length before them. Waits at most until `end`. Errors: backend.
[[nodiscard]] Result<void> send_frame(const Descriptor& to, std::string_view bytes, Clock::time_point end);
/// Receives a frame. Errors: backend ("closed", a frame above 1 GiB, or nothing until `end`).
[[nodiscard]] Result<std::string> receive_frame(const Descriptor& from, Clock::time_point end);

/// Other machines find this one by this name. The loopback address, if its name has no address.
[[nodiscard]] std::string host_name();

/// The process at the other end of a Unix socket, or the address at the other end of a TCP connection.
[[nodiscard]] std::string peer_of(int number);

/// Waits until one of the descriptors can be read or is closed. False: nothing until `end`, or interrupted.
[[nodiscard]] bool wait_readable(std::span<const int> descriptors, Clock::time_point end);

/// True if the other end has closed, and nothing is left to read.
[[nodiscard]] bool is_closed(const Descriptor& one);

}  // namespace reshard::live
