#include "backends/mpi/base/roll.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/common/fingerprints.hpp"
#include "backends/common/waits.hpp"
#include "backends/mpi/base/polled.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"
#include "src/execute/flights.hpp"

namespace reshard::mpi {
namespace {

using Clock = Post::Clock;

constexpr auto grace = std::chrono::seconds(2);             // for the answer of a rank that has come
constexpr auto last_word = std::chrono::milliseconds(100);  // for an answer that is on its way
constexpr auto quiet = std::chrono::milliseconds(20);       // at the board, before a rank writes letters

std::string_view name(std::int32_t call) {
    return call == static_cast<std::int32_t>(Call::agree) ? "Backend::agree" : "Backend::prepare";
}

// Until `request` is done, or the time is over, or the wait is interrupted; then it is left to MPI.
Result<bool> done_within(MPI_Request& request, Clock::time_point until) {
    Pace pace;
    for (int done = 0;; pace.rest()) {
        const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        RESHARD_CHECK(checked(code, "MPI_Test"));
        if (done != 0) return true;
        if (Clock::now() >= until || Interrupt::raised()) return false;
    }
}

std::string interrupted(const Letter& own) {
    return fmt::format("rank {} was interrupted in {}", own.rank, name(own.call));
}

}  // namespace

// Two rounds. A rank that gives up in the first round joins the second one at once, as failed. So it is never a call
// apart, and a late rank learns of it.
Result<void> all_come(MPI_Comm communicator, const Result<void>& own, std::string_view call,
                      std::chrono::milliseconds timeout) {
    // MPI writes here as long as a round runs, also one that is not waited for to its end.
    auto* const well = new std::array<int, 4>{};
    Result<void> came;
    for (const std::size_t round : {0, 2}) {
        (*well)[round] = own && came ? 1 : 0;
        MPI_Request request = MPI_REQUEST_NULL;
        const int code =
            MPI_Iallreduce(&(*well)[round], &(*well)[round + 1], 1, MPI_INT, MPI_MIN, communicator, &request);
        RESHARD_CHECK(checked(code, "MPI_Iallreduce"));
        if (!came) break;
        RESHARD_TRY(const auto& done, done_within(request, Clock::now() + timeout));
        if (done) continue;
        came = fail(Code::backend, Interrupt::raised()
                                       ? fmt::format("this rank was interrupted in {}", call)
                                       : fmt::format("not all ranks came to {} within {}", call, in_words(timeout)));
    }
    if (!came) return own ? came : own;
    const bool all = (*well)[1] != 0 && (*well)[3] != 0;
    delete well;
    if (!own || all) return own;
    return fail(Code::backend, fmt::format("another rank failed in {}", call));
}

Result<std::unique_ptr<Roll>> Roll::make(MPI_Comm communicator, std::chrono::milliseconds timeout) {
    RESHARD_TRY(auto& post, Post::of(communicator));
    std::unique_ptr<Roll> roll(new Roll);
    roll->post_ = std::move(post);
    roll->timeout_ = timeout;
    MPI_Comm_rank(communicator, &roll->rank_);
    MPI_Comm_size(communicator, &roll->size_);
    if (roll->rank_ == 0) roll->backend_ = roll->post_->next_backend();
    RESHARD_ASSIGN(roll->backend_, broadcast(communicator, roll->backend_, 0));
    roll->own_ = roll->letter(Word::arrived);
    return roll;
}

Roll::~Roll() {
    if (!usable()) return;
    const Letter gone = letter(Word::gone);
    if (rank_ == 0 || vote())
        send_all(gone);
    else
        post_->send(0, gone);
    post_->close_backend(backend_);
}

Letter Roll::letter(Word word) const {
    Letter letter;
    letter.word = word;
    letter.rank = rank_;
    letter.backend = backend_;
    letter.number = number_;
    return letter;
}

void Roll::send_all(const Letter& letter) const {
    for (int rank = 0; rank < size_; ++rank) {
        if (rank != rank_) post_->send(rank, letter);
    }
}

Result<void> Roll::meet(Call call, const Result<std::uint64_t>& own) {
    if (broken_ && own)
        return fail(Code::backend, fmt::format("an earlier call of this backend failed: {}", broken_->message));
    if (broken_) return tl::unexpected(own.error());
    own_.number = ++number_;
    own_.call = static_cast<std::int32_t>(call);
    own_.write(own);
    at_board_ = come_to_board();
    if (at_board_ && carrier_agrees(alone_ ? quiet : std::chrono::microseconds(0))) return {};
    const Verdict verdict = meet(own_);
    if (verdict.last) broken_ = verdict.on_all.error();
    if (!own) return tl::unexpected(own.error());
    return verdict.on_all;
}

// A rank that was interrupted waits for nobody, so it does not come to the board.
bool Roll::come_to_board() {
    if (!board_) return false;
    if (own_.code >= 0 && Interrupt::raised()) {
        static_cast<void>(board_->close(number_));
        return false;
    }
    const bool came = board_->come(own_);
    if (came && carrier_ != nullptr && own_.code < 0) carrier_->send({number_, own_.value});
    return came;
}

// Messages with one presence say that all ranks have come to the board and agree.
bool Roll::carrier_agrees(std::chrono::microseconds most) const {
    return carrier_ != nullptr && own_.code < 0 && carrier_->all_have({number_, own_.value}, most);
}

// Runs of this thread that are in flight must go on meanwhile, and only letters look after them.
Roll::Verdict Roll::meet(const Letter& own) {
    if (vote()) return vote(own);
    const bool alone = Flights::of_this_thread()->empty();
    if (const auto met = on_board(own, alone ? quiet : std::chrono::microseconds(0))) return *met;
    return rank_ == 0 ? preside(own) : attend(own);
}

// The answer of the board, once all ranks have come there. The same on all ranks.
std::optional<Roll::Verdict> Roll::on_board(const Letter& own, std::chrono::microseconds most) const {
    if (!at_board_) return std::nullopt;
    if (carrier_agrees(std::chrono::microseconds(0))) return Verdict{};
    if (!board_->all_come(number_, most)) return std::nullopt;
    if (board_->agrees(own)) return Verdict{};
    std::map<int, Letter> come;
    for (int rank = 0; rank < size_; ++rank) come.emplace(rank, board_->letter_of(rank, number_));
    return compare(come);
}

// Closes the board, since this rank goes by letters. Too late if all ranks have come: then the board's answer counts.
std::optional<Roll::Verdict> Roll::leave_board(const Letter& own) const {
    if (!at_board_ || board_->close(number_)) return std::nullopt;
    return on_board(own, std::chrono::microseconds(0));
}

// Letters of calls to come are kept: a call that has failed is over for the others before the last rank comes to it.
void Roll::collect(Post::Look look, std::size_t most) {
    std::erase_if(mail_, [&](const Mail& mail) { return mail.letter.number < number_; });
    for (Mail& mail : post_->calls(backend_, look, most)) {
        const Letter& letter = mail.letter;
        if (letter.word == Word::gone || (letter.word == Word::withdrew && letter.value != 0))
            left_.emplace(letter.rank, letter);
        else if (letter.number >= number_)
            mail_.push_back(std::move(mail));
    }
}

// Each rank writes its letter to all others, and compares the letters of all. A rank that gives up says so to all,
// since a rank that comes later must not write its letter then. For a moment longer the rank takes letters that are on
// their way: if all have written, all agree.
Roll::Verdict Roll::vote(const Letter& own) {
    auto until = Clock::now() + timeout_;
    bool written = false;
    auto missing = static_cast<std::size_t>(size_) - 1;  // letters
    std::optional<Verdict> given_up;
    const auto give_up = [&](std::string_view why, bool last) {
        given_up = {fail(Code::backend, std::string(why)), last};
        until = Clock::now() + last_word;
    };
    for (Pace pace(patience_);; pace.rest()) {
        if (written)
            collect(Post::Look::always, missing);
        else
            collect(Post::Look::seldom);  // all letters: a rank that withdrew wrote before
        std::map<int, const Mail*> come;
        for (const Mail& mail : mail_) {
            if (mail.letter.number != number_) continue;
            if (mail.letter.word == Word::arrived) come.emplace(mail.letter.rank, &mail);
            if (mail.letter.word == Word::withdrew && !given_up) give_up(mail.letter.message(), false);
        }
        for (const auto& [rank, letter] : left_) {
            const bool withdrew = letter.word == Word::withdrew;
            if (withdrew && letter.number < number_) return {fail(Code::backend, std::string(letter.message())), true};
            if (withdrew && letter.number == number_ && !given_up) give_up(letter.message(), true);
            if (!withdrew && !come.contains(rank))
                return {fail(Code::backend, fmt::format("rank {} dropped its backend", rank)), true};
        }
        missing = static_cast<std::size_t>(size_) - 1 - come.size();
        const bool interrupted_now = Interrupt::raised() && !given_up;
        if (!written && !given_up && !(interrupted_now && own.code < 0)) {
            for (int k = 1; k < size_; ++k) {
                const int rank = (rank_ + k) % size_;
                const bool encloses = enclosure_ != nullptr && own.code < 0;
                post_->send(rank, own, encloses ? enclosure_->to(rank) : std::span<const std::byte>());
            }
            written = true;
        }
        if (written && std::ssize(come) + 1 == size_) return count(own, come);
        if (given_up && (!written || pace.now() >= until)) return *given_up;
        if (given_up || (!interrupted_now && pace.now() < until)) continue;
        if (interrupted_now && !own.brought()) return {own.brought().map([](std::uint64_t) {})};
        std::vector<int> absent;
        for (int rank = 0; rank < size_; ++rank) {
            if (rank != rank_ && !come.contains(rank)) absent.push_back(rank);
        }
        const std::string why = interrupted_now ? interrupted(own)
                                                : fmt::format("{} did not come to {} within {}", ranks_in_words(absent),
                                                              name(own.call), in_words(timeout_));
        withdraw(why, !interrupted_now);
        give_up(why, !interrupted_now);
    }
}

Roll::Verdict Roll::count(const Letter& own, const std::map<int, const Mail*>& come) {
    const bool agree = own.code < 0 && std::ranges::all_of(come, [&](const auto& one) {
                           const Letter& theirs = one.second->letter;
                           return theirs.code < 0 && theirs.value == own.value && theirs.call == own.call;
                       });
    if (!agree) {
        std::map<int, Letter> all{{rank_, own}};
        for (const auto& [rank, mail] : come) all.emplace(rank, mail->letter);
        return compare(all);
    }
    if (enclosure_ != nullptr) {
        for (const auto& [rank, mail] : come) enclosure_->take(rank, mail->data);
    }
    return {};
}

Roll::Verdict Roll::preside(const Letter& own) {
    const auto begin = Clock::now();
    std::map<int, Letter> come{{0, own}};
    std::optional<Letter> withdrew;
    bool said = false;
    for (Pace pace;; pace.rest()) {
        if (const auto met = on_board(own, std::chrono::microseconds(0))) return *met;
        collect();
        for (const auto& [letter, data] : mail_) {
            if (letter.number != number_) continue;
            if (letter.word == Word::arrived) come[letter.rank] = letter;
            if (letter.word == Word::withdrew) withdrew = letter;
        }
        const auto waited = Clock::now() - begin;
        auto verdict = judge(come, waited < timeout_);
        if (withdrew && (!verdict || !verdict->last)) verdict = {fail(Code::backend, std::string(withdrew->message()))};
        if (!verdict && Interrupt::raised())
            verdict = own.brought() ? Verdict{fail(Code::backend, interrupted(own))} : compare(come);
        if (verdict) {
            if (const auto met = leave_board(own)) return *met;
            const bool all_wait = come.size() == static_cast<std::size_t>(size_) && !withdrew && !verdict->last;
            if (board_ && all_wait) board_->open_after(number_);
            Letter answer = letter(Word::verdict);
            const std::uint64_t last = verdict->last ? 1 : 0;
            answer.write(verdict->on_all.map([&] { return last; }));
            answer.value = last;
            send_all(answer);
            return *verdict;
        }
        if (!said && waited > timeout_ / 4) {
            send_all(letter(Word::here));
            said = true;
        }
    }
}

std::optional<Roll::Verdict> Roll::judge(const std::map<int, Letter>& come, bool in_time) const {
    const auto last = [](std::string message) { return Verdict{fail(Code::backend, std::move(message)), true}; };
    for (const auto& [rank, letter] : left_) {
        if (letter.word == Word::withdrew) return last(std::string(letter.message()));
        if (!come.contains(rank)) return last(fmt::format("rank {} dropped its backend", rank));
    }
    if (come.size() == static_cast<std::size_t>(size_)) return compare(come);
    if (in_time) return std::nullopt;
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
        const bool at_board = at_board_ && board_->has_come(rank, number_);
        if (!come.contains(rank) && !at_board) missing.push_back(rank);
    }
    return last(fmt::format("{} did not come to {} within {}", ranks_in_words(missing), name(come.at(0).call),
                            in_words(timeout_)));
}

Roll::Verdict Roll::compare(const std::map<int, Letter>& come) const {
    const Letter& first = come.at(0);
    for (const auto& [rank, letter] : come) {
        if (letter.call == first.call) continue;
        return Verdict{fail(Code::backend,
                            fmt::format("rank {} came to {}, rank 0 to {}", rank, name(letter.call), name(first.call))),
                       true};
    }
    std::vector<std::optional<Brought>> brought;
    for (const auto& [rank, letter] : come) brought.emplace_back(letter.brought());
    return Verdict{same_plans(brought)};
}

// Rank 0 decides. A rank that gives up says so, and takes an answer that is on its way. One that was interrupted says
// so to all: rank 0 may be late too. A rank that has failed itself knows the answer.
Roll::Verdict Roll::attend(const Letter& own) {
    const auto begin = Clock::now();
    auto until = begin + timeout_;
    bool told = false;  // rank 0 has this rank's letter
    bool here = false;
    std::optional<Verdict> given_up;
    const auto abandon = [&](std::string why, bool last) {
        given_up = {fail(Code::backend, std::move(why)), last};
        until = Clock::now() + last_word;
    };
    for (Pace pace;; pace.rest()) {
        if (const auto met = on_board(own, std::chrono::microseconds(0))) return *met;
        const bool writes = !at_board_ || !board_->is_open() || Clock::now() - begin > quiet;
        if (writes && !std::exchange(told, true)) post_->send(0, own);
        collect();
        // Rank 0 may have answered before it dropped its backend.
        for (const auto& [letter, data] : mail_) {
            if (letter.number != number_) continue;
            if (letter.word == Word::here && !std::exchange(here, true)) until = Clock::now() + timeout_ + grace;
            if (letter.word == Word::withdrew && !given_up) abandon(std::string(letter.message()), false);
            if (letter.word == Word::verdict) return {letter.brought().map([](std::uint64_t) {}), letter.value != 0};
        }
        for (const auto& [rank, letter] : left_) {
            if (rank != 0 && letter.word != Word::withdrew) continue;
            if (const auto met = leave_board(own)) return *met;
            if (letter.word == Word::withdrew) return {fail(Code::backend, std::string(letter.message())), true};
            if (rank == 0) return {fail(Code::backend, "rank 0 dropped its backend"), true};
        }
        const bool in_time = Clock::now() < until;
        if (given_up && !in_time) return *given_up;
        if (given_up) continue;
        if (Interrupt::raised() || !in_time) {
            if (const auto met = leave_board(own)) return *met;
            if (!std::exchange(told, true)) post_->send(0, own);
        }
        if (Interrupt::raised()) {
            if (!own.brought()) return {own.brought().map([](std::uint64_t) {})};
            withdraw(interrupted(own), false);
            abandon(interrupted(own), false);
        } else if (!in_time) {
            Letter withdrew = letter(Word::withdrew);
            withdrew.value = 1;
            withdrew.write(fmt::format("rank {} gave up waiting for rank 0", rank_));
            post_->send(0, withdrew);
            abandon(fmt::format("rank 0 did not {} {} within {}", here ? "answer in" : "come to", name(own.call),
                                in_words(timeout_)),
                    true);
        }
    }
}

Result<void> Roll::trouble() {
    collect();
    for (const auto& [rank, letter] : left_) {
        if (!broken_ && letter.word == Word::withdrew) broken_ = Error{Code::backend, std::string(letter.message())};
    }
    if (!broken_ && Interrupt::raised()) {
        broken_ = Error{Code::backend, fmt::format("rank {} was interrupted while the ranks prepared", rank_)};
        withdraw(broken_->message, true);
    }
    return broken_ ? tl::unexpected(*broken_) : Result<void>();
}

void Roll::withdraw(const std::string& why, bool last) {
    Letter withdrew = letter(Word::withdrew);
    withdrew.value = last ? 1 : 0;
    withdrew.write(why);
    send_all(withdrew);
}

}  // namespace reshard::mpi
