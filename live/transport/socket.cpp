#include "live/transport/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "src/base/interrupt.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

constexpr std::uint64_t frame_bytes_max = std::uint64_t{1} << 30;

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
    int family = AF_UNIX;
    std::string path;  // of a Unix socket
    [[nodiscard]] const sockaddr* any() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<std::vector<Address>> unix_address(const std::string& path) {
    Address address;
    auto& local = reinterpret_cast<sockaddr_un&>(address.storage);
    if (path.size() >= sizeof(local.sun_path))
        return fail(Code::usage, fmt::format("the endpoint {} has {} bytes; a Unix socket's path has at most {}",
                                             in_quotes(path), path.size(), sizeof(local.sun_path) - 1));
    local.sun_family = AF_UNIX;
    std::ranges::copy(path, local.sun_path);
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    address.path = path;
    return std::vector{address};
}

// The addresses of an endpoint, at least one.
Result<std::vector<Address>> addresses_of(const std::string& endpoint, Kind kind) {
    if (endpoint.find('/') != std::string::npos) return unix_address(endpoint);
    const auto colon = endpoint.rfind(':');
    if (kind == Kind::packets || colon == std::string::npos || colon + 1 == endpoint.size())
        return fail(Code::usage, fmt::format("{} is no endpoint; wanted a path with a /{}", in_quotes(endpoint),
                                             kind == Kind::stream ? " or host:port" : ""));
    const std::string host = endpoint.substr(0, colon);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found); code != 0)
        return fail(Code::backend,
                    fmt::format("cannot find the host of {}: {}", in_quotes(endpoint), gai_strerror(code)));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> kept(found, freeaddrinfo);
    std::vector<Address> all;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        Address& address = all.emplace_back();
        std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
        address.length = one->ai_addrlen;
        address.family = one->ai_family;
    }
    return all;
}

Descriptor open_socket(const Address& address, Kind kind) {
    const int type = kind == Kind::stream ? SOCK_STREAM : SOCK_SEQPACKET;
    Descriptor made(socket(address.family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (address.family != AF_UNIX) {  // a vote is small and must not wait for more
        setsockopt(made.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    return made;
}

// Connects within the time. If it fails, errno says why.
bool connects(const Descriptor& made, const Address& address, Clock::time_point end) {
    if (connect(made.number(), address.any(), address.length) == 0) return true;
    if (errno != EINPROGRESS) return false;
    pollfd one{made.number(), POLLOUT, 0};
    while (poll(&one, 1, std::min(milliseconds_until(end), 100)) <= 0) {
        if (Clock::now() < end && !Interrupt::raised()) continue;
        errno = ETIMEDOUT;
        return false;
    }
    int code = 0;
    socklen_t length = sizeof code;
    if (getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &code, &length) != 0) return false;
    errno = code;
    return code == 0;
}

}  // namespace

int milliseconds_until(Clock::time_point end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000 * 1000));
}

Descriptor::~Descriptor() {
    if (number_ >= 0) close(number_);
}

tl::unexpected<Error> cannot(const std::string& what) {
    return fail(Code::backend, fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

Result<Listener> Listener::open(const std::string& endpoint, Kind kind) {
    RESHARD_TRY(const auto& addresses, addresses_of(endpoint, kind));
    const Address& address = addresses.front();
    Descriptor made = open_socket(address, kind);
    if (!made.is_open()) return cannot("make a socket");
    int bound = bind(made.number(), address.any(), address.length);
    if (bound != 0 && errno == EADDRINUSE && !address.path.empty()) {
        const Descriptor probe = open_socket(address, kind);
        if (connect(probe.number(), address.any(), address.length) == 0 || errno == EAGAIN)
            return fail(Code::backend, fmt::format("another process listens at {}", in_quotes(endpoint)));
        unlink(address.path.c_str());  // its process is gone
        bound = bind(made.number(), address.any(), address.length);
    }
    if (bound != 0 || listen(made.number(), SOMAXCONN) != 0) return cannot("listen at " + in_quotes(endpoint));
    return Listener(std::move(made), address.path);
}

Listener::~Listener() {
    if (descriptor_.is_open() && !path_.empty()) unlink(path_.c_str());
}

Descriptor Listener::accept() const {
    const int waiting = number();
    if (!wait_readable({&waiting, 1}, Clock::now())) return {};
    return Descriptor(accept4(waiting, nullptr, nullptr, SOCK_CLOEXEC));
}

int Listener::port() const {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    if (getsockname(number(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
    if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
    if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
    return 0;
}

Result<Descriptor> connect_to(const std::string& endpoint, Kind kind, Clock::time_point end) {
    while (true) {
        RESHARD_TRY(const auto& addresses, addresses_of(endpoint, kind));
        for (const Address& address : addresses) {
            Descriptor made = open_socket(address, kind);
            if (!made.is_open()) return cannot("make a socket");
            if (connects(made, address, end)) return made;
        }
        if (Clock::now() >= end || Interrupt::raised()) return cannot("connect to " + in_quotes(endpoint));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

Result<void> send_frame(const Descriptor& to, std::string_view bytes, Clock::time_point end) {
    std::uint64_t length = bytes.size();
    std::string whole(reinterpret_cast<const char*>(&length), sizeof length);
    whole += bytes;
    std::string_view left = whole;
    while (!left.empty()) {
        const auto sent = send(to.number(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            left.remove_prefix(static_cast<std::size_t>(sent));
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) return cannot("send");
        pollfd one{to.number(), POLLOUT, 0};
        if (Clock::now() >= end) return fail(Code::backend, "the other end reads nothing");
        poll(&one, 1, milliseconds_until(end));
    }
    return {};
}

Result<std::string> receive_frame(const Descriptor& from, Clock::time_point end) {
    std::string bytes(sizeof(std::uint64_t), '\0');
    std::size_t have = 0;
    bool has_length = false;
    while (true) {
        if (have == bytes.size()) {
            if (has_length) return bytes;
            std::uint64_t length = 0;
            std::memcpy(&length, bytes.data(), sizeof length);
            if (length > frame_bytes_max) return fail(Code::backend, "the other end speaks another protocol");
            bytes.assign(length, '\0');
            has_length = true;
            have = 0;
            if (length == 0) return bytes;
        }
        const int one = from.number();
        if (!wait_readable({&one, 1}, end)) return fail(Code::backend, "the other end is silent");
        const auto came = recv(from.number(), bytes.data() + have, bytes.size() - have, MSG_DONTWAIT);
        if (came == 0) return fail(Code::backend, "its connection is closed");
        if (came < 0 && errno != EAGAIN && errno != EINTR) return cannot("receive");
        if (came > 0) have += static_cast<std::size_t>(came);
    }
}

std::string host_name() {
    char name[256] = {};
    if (gethostname(name, sizeof name - 1) != 0) return "127.0.0.1";
    addrinfo* found = nullptr;
    if (getaddrinfo(name, nullptr, nullptr, &found) != 0) return "127.0.0.1";
    freeaddrinfo(found);
    return name;
}

std::string peer_of(int number) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    auto* const any = reinterpret_cast<sockaddr*>(&storage);
    if (getpeername(number, any, &length) == 0 && storage.ss_family != AF_UNIX) {
        char host[NI_MAXHOST] = {};
        char port[NI_MAXSERV] = {};
        if (getnameinfo(any, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
            return fmt::format("{}:{}", host, port);
    }
    ucred process{};
    length = sizeof process;
    if (getsockopt(number, SOL_SOCKET, SO_PEERCRED, &process, &length) == 0 && process.pid > 0)
        return fmt::format("process {}", process.pid);
    return "unknown";
}

bool wait_readable(std::span<const int> descriptors, Clock::time_point end) {
    std::vector<pollfd> all;
    for (const int one : descriptors) all.push_back({one, POLLIN, 0});
    while (true) {
        const auto look = std::min<Clock::time_point>(end, Clock::now() + Interrupt::interval);
        const int ready = poll(all.data(), all.size(), milliseconds_until(look));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        if (Clock::now() >= end || Interrupt::raised()) return false;
    }
}

bool is_closed(const Descriptor& one) {
    char byte = 0;
    const auto came = recv(one.number(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return came == 0 || (came < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace reshard::live
