#include "backends/mpi/messages/reduction_run.hpp"

#include <algorithm>

namespace reshard::mpi {

void ReductionRun::begin() {
    requests_.restart(staging_slots);
    const std::vector<MessageStep>& steps = state_.stage().steps;
    const auto found = std::ranges::find_if(steps, [](const MessageStep& step) { return step.reduction != nullptr; });
    step_ = found == steps.end() ? nullptr : &*found;
    number_ = static_cast<std::size_t>(found - steps.begin());
    next_ = 0;
    post();
}

// Posts the parts in order, which is the same on all members.
void ReductionRun::post() {
    if (step_ == nullptr) return;
    const Reduction& reduction = *step_->reduction;
    for (; next_ < reduction.parts.size(); ++next_) {
        const std::size_t place = next_ % staging_slots;
        if (!requests_.is_free(place)) return;
        parts_[place] = next_;
        const Reduction::Part& part = reduction.parts[next_];
        state_.copy(part.in);
        requests_.post(place, {"reducing", Pending::collective, -1, number_}, [&](MPI_Request* request) {
            return MPI_Iallreduce(MPI_IN_PLACE, state_.write(step_->array, BufferId::staging) + part.slot_offset,
                                  part.elements, reduction.type.get(), reduction.sum.get(), reduction.communicator,
                                  request);
        });
    }
}

bool ReductionRun::advance() {
    while (!requests_.all_ended()) {
        const std::vector<Requests::Ended>& ended = requests_.test();
        if (ended.empty()) return false;
        for (const auto [place, well] : ended) {
            if (well) state_.copy(step_->reduction->parts[parts_[place]].out);
        }
        post();
    }
    return true;
}

void ReductionRun::abandon(GivenUp& run) {
    using Kept = std::pair<std::shared_ptr<Memory>, std::shared_ptr<const Reduction>>;
    const auto reduction = step_ == nullptr ? nullptr : step_->reduction;
    requests_.abandon(run, std::make_shared<const Kept>(state_.plan().staging, reduction));
}

}  // namespace reshard::mpi
