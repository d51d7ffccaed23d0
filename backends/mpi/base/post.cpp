#include "backends/mpi/base/post.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/mpi/base/polled.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr int letter_tag = 0;
constexpr std::size_t text_offset = offsetof(Letter, text);

Mail opened(std::vector<std::byte> message) {
    Mail mail;
    const auto text = message.begin() + static_cast<std::ptrdiff_t>(text_offset);
    const auto data = std::find(text, message.end(), std::byte{0}) + 1;
    std::memcpy(&mail.letter, message.data(), static_cast<std::size_t>(data - message.begin()));
    message.erase(message.begin(), data);
    mail.data = std::move(message);
    return mail;
}

// One for the process, never freed: a letter may arrive as long as MPI runs.
struct Posts {
    struct One {
        std::shared_ptr<Post> post;
        MPI_Comm communicator;
        std::uint64_t number;  // of its rank 0's, from 1
    };
    std::mutex mutex;  // never held while others are waited for
    std::vector<One> all;
    std::uint64_t made = 0;
};

Posts& posts() {
    static auto* const only = new Posts;
    return *only;
}

// The latest whose ranks are these in this order, if there is one.
std::optional<Posts::One> known(MPI_Comm communicator) {
    const std::lock_guard lock(posts().mutex);
    const std::vector<Posts::One>& all = posts().all;
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Posts::One& one) {
        int result = MPI_UNEQUAL;
        return MPI_Comm_compare(one.communicator, communicator, &result) == MPI_SUCCESS && result == MPI_CONGRUENT;
    });
    return found == all.rend() ? std::nullopt : std::optional(*found);
}

Result<std::shared_ptr<Post>> another(MPI_Comm communicator) {
    RESHARD_TRY(auto& own, duplicate(communicator));
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(posts().mutex);
        number = ++posts().made;
    }
    RESHARD_ASSIGN(number, broadcast(communicator, number, 0));
    MPI_Comm raw = own.get();
    auto made = std::make_shared<Post>(std::move(own));
    const std::lock_guard lock(posts().mutex);
    posts().all.push_back({made, raw, number});
    return made;
}

}  // namespace

void Letter::write(std::string_view message) { text[message.copy(text.data(), text.size() - 1)] = '\0'; }

Result<std::uint64_t> Letter::brought() const {
    if (code < 0) return value;
    return fail(static_cast<Code>(code), std::string(message()));
}

void Letter::write(const Result<std::uint64_t>& brought) {
    code = brought ? -1 : static_cast<std::int32_t>(brought.error().code);
    value = brought.value_or(0);
    if (!brought) write(brought.error().message);
}

// All ranks use the same one. If some ranks know another one, after a failed call or two calls at once, all make a new
// one.
Result<std::shared_ptr<Post>> Post::of(MPI_Comm communicator) {
    const auto found = known(communicator);
    const std::uint64_t number = found ? found->number : 0;
    RESHARD_TRY(const auto& least,
                reduced(communicator, std::array<std::uint64_t, 2>{number, ~number}, MPI_UINT64_T, MPI_MIN));
    if (number != 0 && least[0] == ~least[1]) return found->post;
    return another(communicator);
}

std::uint64_t Post::next_backend() {
    const std::lock_guard lock(mutex_);
    return ++backends_;
}

void Post::close_backend(std::uint64_t backend) {
    const std::lock_guard lock(mutex_);
    closed_.insert(backend);
    calls_.erase(backend);
    opened_.erase(backend);
    std::erase_if(executors_, [&](const auto& one) { return one.first.first == backend && !one.second.estate; });
    poll();
}

// A message is the letter up to the end of its text, and the data.
void Post::send(int to, const Letter& letter, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    const std::size_t head = text_offset + letter.message().size() + 1;
    auto& [request, message] = sent_.emplace_back(MPI_REQUEST_NULL, std::vector<std::byte>(head + data.size()));
    std::memcpy(message.data(), &letter, head);
    std::ranges::copy(data, message.begin() + static_cast<std::ptrdiff_t>(head));
    MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, to, letter_tag, communicator_.get(),
              &request);
    std::erase_if(sent_, [](auto& one) {
        int done = 0;
        return MPI_Test(&one.first, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
}

void Post::poll(Look look, std::size_t most) {
    if (look == Look::seldom) {
        constexpr auto seldom = std::chrono::milliseconds(1);
        const auto now = Clock::now();
        if (now - looked_ < seldom) return;
        looked_ = now;
    }
    bool any = false;
    for (std::size_t left = most; left > 0; --left) {
        int come = 0;
        MPI_Status status{};
        if (MPI_Iprobe(MPI_ANY_SOURCE, letter_tag, communicator_.get(), &come, &status) != MPI_SUCCESS) return;
        if (come == 0) break;
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        std::vector<std::byte> message(static_cast<std::size_t>(bytes));
        const int code = MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, letter_tag, communicator_.get(),
                                  MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return;
        take(opened(std::move(message)));
        any = true;
    }
    if (any) free_estates();
}

void Post::take(Mail mail) {
    const Letter& letter = mail.letter;
    if (letter.word < Word::failed) {
        if (!closed_.contains(letter.backend)) calls_[letter.backend].push_back(std::move(mail));
        return;
    }
    const ExecutorKey key{letter.backend, letter.number};
    if (!executors_.contains(key)) {
        const auto opened = opened_.find(letter.backend);
        const bool to_come = opened == opened_.end() || letter.number > opened->second;
        if (closed_.contains(letter.backend) || !to_come) return;
    }
    // If it failed first and was dropped later, the failure counts.
    auto& notices = executors_[key].notices;
    const auto known = notices.find(letter.rank);
    if (known != notices.end() && known->second.letter.word == Word::failed) return;
    notices[letter.rank] = {letter, Clock::now()};
}

std::vector<Mail> Post::calls(std::uint64_t backend, Look look, std::size_t most) {
    const std::lock_guard lock(mutex_);
    poll(look, most);
    const auto found = calls_.find(backend);
    return found == calls_.end() ? std::vector<Mail>() : std::exchange(found->second, {});
}

std::map<int, Post::Notice> Post::notices(const ExecutorKey& key, Look look) {
    const std::lock_guard lock(mutex_);
    poll(look);
    const auto found = executors_.find(key);
    return found == executors_.end() ? std::map<int, Notice>() : found->second.notices;
}

void Post::open_executor(const ExecutorKey& key) {
    const std::lock_guard lock(mutex_);
    executors_[key];
    opened_[key.first] = key.second;
}

void Post::close_executor(const ExecutorKey& key, Estate estate) {
    const std::lock_guard lock(mutex_);
    executors_[key].estate = std::move(estate);
    poll();
    free_estates();
}

void Post::free_estates() {
    std::erase_if(executors_, [](const auto& one) {
        const auto& [notices, estate] = one.second;
        return estate && std::ranges::all_of(estate->peers, [&, &left = *estate](int peer) {
                   const auto said = notices.find(peer);
                   return left.well && said != notices.end() && said->second.letter.word == Word::dropped &&
                          said->second.letter.value == left.runs;
               });
    });
}

}  // namespace reshard::mpi
