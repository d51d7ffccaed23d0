// Fuzzes the decoders of chunks: fuzz_chunks PATH [SECONDS] [SEED CASE].
//
// PATH is a path through the decoders: zstd, gzip, zlib, blosc, crc32c, or two (codecs). Each case encodes random bytes
// with a random codec of the path, and most cases damage them: bytes are flipped, cut off, repeated or overwritten, and
// headers lie about sizes. For any chunk the decoder must return the wanted bytes or an error, write nothing beside
// them, and hold no more memory than Coder::decode_memory says, which is what `convert` keeps free for it. A failure
// prints the seed and the number of its case. RESHARD_LONG=1 runs for RESHARD_LONG_SECONDS, by default 10 minutes.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "files/base/codecs.hpp"
#include "heap.hpp"

namespace reshard::fuzz {
namespace {

using files::Coder;
using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

constexpr int cases_short = 800;
constexpr std::size_t margin = 64;  // bytes on either side of the decoded ones
constexpr std::byte untouched{0xa5};

std::string failed_in;  // the case that runs

[[noreturn]] void fail_with(const std::string& what) {
    std::fprintf(stderr, "%s\n    %s\n", failed_in.c_str(), what.c_str());
    std::exit(1);
}

std::size_t below(Random& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

bool one_in(Random& random, unsigned count) { return random() % count == 0; }

template <class T, std::size_t n>
T any(Random& random, const std::array<T, n>& of) {
    return of[below(random, n)];
}

std::string codec_of(std::string_view path, Random& random) {
    if (path == "zstd")
        return fmt::format("zstd:{}{}", static_cast<int>(below(random, one_in(random, 20) ? 28 : 15)) - 5,
                           one_in(random, 2) ? ":checksum" : "");
    if (path == "gzip" || path == "zlib") return fmt::format("{}:{}", path, below(random, 10));
    if (path == "blosc") {
        constexpr std::array compressors{"blosclz", "lz4", "lz4hc", "zlib", "zstd"};
        constexpr std::array shuffles{"noshuffle", "shuffle", "bitshuffle"};
        return fmt::format("blosc:{}:{}:{}", any(random, compressors), below(random, 10), any(random, shuffles));
    }
    if (path == "crc32c") return "crc32c";
    constexpr std::array kinds{"zstd", "gzip", "zlib", "blosc", "crc32c"};
    return codec_of(any(random, kinds), random) + "," + codec_of(any(random, kinds), random);
}

Bytes random_bytes(Random& random) {
    constexpr std::array<std::size_t, 6> ends{1, 20, 300, 5000, 40'000, 200'000};
    Bytes bytes(below(random, any(random, ends)));
    const std::size_t values = any(random, std::array<std::size_t, 4>{1, 3, 40, 256});
    for (std::byte& one : bytes) one = static_cast<std::byte>(below(random, values));
    return bytes;
}

void check_memory(std::string_view what, std::size_t bytes, Index most, Index promised) {
    if (most > promised)
        fail_with(fmt::format("{} {} bytes held {} bytes of memory, and {} are promised", what, bytes, most, promised));
}

Bytes encoded(Coder& coder, const Bytes& bytes) {
    Bytes into(static_cast<std::size_t>(coder.bound(std::ssize(bytes))));
    const Index held = heap_begin();
    const auto length = coder.encode(bytes, into);
    check_memory("encoding", bytes.size(), heap_most() - held, coder.encode_memory(std::ssize(bytes)));
    if (!length) fail_with("cannot encode: " + length.error().message);
    into.resize(static_cast<std::size_t>(*length));
    return into;
}

void overwrite(Random& random, Bytes& bytes) {
    // Sizes and places are near the start of most formats, and at the end of gzip's.
    const std::size_t at = one_in(random, 4) ? below(random, bytes.size())
                           : one_in(random, 4)
                               ? bytes.size() - std::min<std::size_t>(bytes.size(), 1 + below(random, 8))
                               : below(random, std::min<std::size_t>(bytes.size(), 32));
    constexpr std::array<std::uint64_t, 12> numbers{
        0, 1, 15, 16, 0x7f, 0xff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0xffffffffffffffff};
    const std::uint64_t number = one_in(random, 3) ? random() : any(random, numbers);
    const std::size_t size =
        std::min<std::size_t>(any(random, std::array<std::size_t, 4>{1, 2, 4, 8}), bytes.size() - at);
    std::memcpy(bytes.data() + at, &number, size);
}

// Changes a chunk once. `other` is another chunk of the same codec.
void damage(Random& random, Bytes& bytes, const Bytes& other) {
    const auto at = static_cast<std::ptrdiff_t>(below(random, bytes.size() + 1));
    switch (random() % 7) {
        case 0:
            bytes.resize(static_cast<std::size_t>(at));
            break;
        case 1:
            if (!bytes.empty()) bytes[below(random, bytes.size())] ^= std::byte{1} << below(random, 8);
            break;
        case 2:  // one chunk after the other, or one inside the other
            bytes.insert(one_in(random, 2) ? bytes.end() : bytes.begin() + at, other.begin(), other.end());
            break;
        case 3:
            bytes.erase(bytes.begin() + at,
                        bytes.begin() + at +
                            static_cast<std::ptrdiff_t>(below(
                                random, std::min<std::size_t>(bytes.size() - static_cast<std::size_t>(at), 16) + 1)));
            break;
        case 4:
            bytes.insert(bytes.begin() + at, 1 + below(random, 40), static_cast<std::byte>(random()));
            break;
        default:
            if (!bytes.empty()) overwrite(random, bytes);
    }
}

// Decodes to `size` bytes, and checks what is promised for any chunk. Returns the bytes, or nothing after an error.
std::optional<Bytes> decoded(const std::string& codec, std::size_t element_bytes, const Bytes& chunk,
                             std::size_t size) {
    auto coder = Coder::make(*files::parse_codecs(codec), static_cast<Index>(element_bytes));
    Bytes into(size + 2 * margin, untouched);
    const Index held = heap_begin();
    const auto done = coder->decode(chunk, std::span(into).subspan(margin, size));
    check_memory("decoding", size, heap_most() - held, coder->decode_memory(static_cast<Index>(size)));
    for (std::size_t i = 0; i < margin; ++i)
        if (into[i] != untouched || into[margin + size + i] != untouched) fail_with("bytes beside a chunk are written");
    if (!done && done.error().message.empty()) fail_with("an error without a sentence");
    if (!done) return std::nullopt;
    return Bytes(into.begin() + margin, into.end() - static_cast<std::ptrdiff_t>(margin));
}

struct Counts {
    long cases = 0;
    long damaged = 0;
    long refused = 0;  // of the damaged ones
};

void run_case(std::string_view path, std::uint64_t seed, std::uint64_t number, Counts& counts) {
    Random random(seed * 0x9e3779b97f4a7c15U + number);
    const std::string codec = codec_of(path, random);
    const auto element_bytes = any(random, std::array<std::size_t, 5>{1, 2, 4, 8, 16});
    failed_in = fmt::format("FAILED fuzz_chunks {} 0 {} {}: {}", path, seed, number, codec);
    auto coder = Coder::make(*files::parse_codecs(codec), static_cast<Index>(element_bytes));
    if (!coder && coder.error().code == Code::unsupported) {
        fmt::print("skipped: {}\n", coder.error().message);
        std::exit(77);
    }
    if (!coder) fail_with(coder.error().message);
    const Bytes bytes = random_bytes(random);
    Bytes chunk = encoded(*coder, bytes);
    ++counts.cases;
    if (one_in(random, 8)) {
        if (decoded(codec, element_bytes, chunk, bytes.size()) != bytes)
            fail_with("a whole chunk decodes to other bytes");
        for (const std::size_t size : {bytes.size() + 1 + below(random, 100), below(random, bytes.size())})
            if (size != bytes.size() && decoded(codec, element_bytes, chunk, size))
                fail_with(fmt::format("a chunk of {} bytes decodes to {}", bytes.size(), size));
        return;
    }
    const Bytes whole = chunk;
    const Bytes other = encoded(*coder, one_in(random, 60) ? Bytes(std::size_t{1} << 22) : random_bytes(random));
    for (int left = 1 + static_cast<int>(below(random, 3)); left > 0; --left) damage(random, chunk, other);
    if (chunk == whole) return;
    ++counts.damaged;
    const bool sized = !one_in(random, 4);
    const auto found = decoded(codec, element_bytes, chunk, sized ? bytes.size() : below(random, 100'000));
    if (!found) ++counts.refused;
}

int run(std::string_view path, double seconds, std::uint64_t seed) {
    const auto begin = std::chrono::steady_clock::now();
    const auto over = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds;
    };
    Counts counts;
    for (std::uint64_t number = 0; seconds > 0 ? !over() : number < cases_short; ++number)
        run_case(path, seed, number, counts);
    fmt::print("{}: {} cases, {} damaged, {} of them refused{}, seed {}\n", path, counts.cases, counts.damaged,
               counts.refused, counts_heap() ? ", memory within its limit" : "", seed);
    return counts.refused > 0 ? 0 : 1;
}

double long_seconds() {
    const char* const run_long = std::getenv("RESHARD_LONG");
    if (run_long == nullptr || std::string_view(run_long) != "1") return 0;
    const char* const seconds = std::getenv("RESHARD_LONG_SECONDS");
    return seconds != nullptr ? std::atof(seconds) : 600;
}

}  // namespace
}  // namespace reshard::fuzz

int main(int count, char** words) {
    using namespace reshard::fuzz;
    if (count < 2) {
        std::fprintf(stderr, "fuzz_chunks PATH [SECONDS] [SEED CASE]\n");
        return 2;
    }
    const std::string_view path = words[1];
    if (count == 5) {
        Counts counts;
        run_case(path, std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10), counts);
        return 0;
    }
    const double seconds = count > 2 ? std::atof(words[2]) : long_seconds();
    const std::uint64_t seed = seconds > 0 ? std::random_device()() : 20261126;
    return run(path, seconds, seed);
}
