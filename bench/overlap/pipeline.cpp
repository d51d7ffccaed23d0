#include "overlap/pipeline.hpp"

#include <memory>

#include "overlap/work.hpp"

namespace reshard::overlap {
namespace {

// A weight of either sign, so small that activations stay about as large from layer to layer.
float weight(Index layer, Index element) { return (static_cast<float>((element * 7 + layer * 5) % 13) - 6) / 128; }

// Layers on this rank. Weights: `pieces_` are gathered into `wholes_`, and activations pass through one after another.
// Gradients: `wholes_` are made from activations, and their sums scattered into `pieces_`.
class Pipeline {
public:
    Pipeline(const PipelineProblem& problem, Backend& backend)
        : problem_(problem), backend_(backend), layers_(static_cast<std::size_t>(problem.layers)) {
        const Mesh mesh{{"rank", backend.size()}};
        const std::vector<Index> shape = {problem.width, problem.width};
        const Layout whole = must(parse_layout(mesh, layout_text(shape, "", problem.gradients ? "{U:rank}" : "")));
        const Layout piece = must(parse_layout(mesh, layout_text(shape, "@rank", "")));
        const Plan plan = problem.gradients ? Plan{whole, piece, {{StepKind::reduce_scatter, piece}}}
                                            : Plan{piece, whole, {{StepKind::all_gather, whole}}};
        // A bucket a layer: they travel one after the other.
        ListPlan list{std::vector<Plan>(layers_, plan), {}, {}};
        for (std::size_t k = 0; k < layers_; ++k) list.buckets.push_back({k});
        executor_ = std::make_unique<Executor>(must(Executor::prepare(judge(list), backend)));
        const std::size_t piece_count = tile_count(piece, backend.rank());
        pieces_.assign(layers_, std::vector<float>(piece_count));
        wholes_.assign(layers_, std::vector<float>(tile_count(whole, backend.rank())));
        first_ = backend.rank() * static_cast<Index>(piece_count);
        for (std::size_t k = 0; k < layers_; ++k) {
            if (!problem.gradients)
                for (std::size_t i = 0; i < piece_count; ++i)
                    pieces_[k][i] = weight(static_cast<Index>(k), first_ + static_cast<Index>(i));
        }
        all_ = must(executor_->bind(buffers()));
        for (std::size_t k = 0; k < layers_; ++k) {
            const std::vector<Buffers> own = {buffers()[k]};
            single_.push_back(must(executor_->bind(k, own)));
        }
    }

    nlohmann::json run(int rounds) {
        const double transfer = measure_transfer(rounds) / static_cast<double>(layers_);
        size_product(transfer);
        make_right();
        RoundTimes times;
        for (int round = 0; round <= rounds; ++round) {
            const auto one = [&](const std::string& name, const std::function<void()>& body) {
                spoil();
                race(times, round, name, body);
                wrong_ += sum_of(wrong_elements());
            };
            one("serial", [&] { serial(); });
            one("pipeline", [&] { pipelined(); });
            one("list, then layers", [&] { one_after_the_other(); });
            if (!problem_.gradients) one("MPI_Iallgather", [&] { by_hand(); });
            one("serial again", [&] { serial(); });
        }
        return {{"work", problem_.gradients ? "gradients" : "layers"},
                {"ranks", backend_.size()},
                {"layers", problem_.layers},
                {"width", problem_.width},
                {"batch", batch_},
                {"ratio", problem_.ratio},
                {"transfer_seconds", transfer},
                {"product_seconds", row_seconds_ * static_cast<double>(product_rows())},
                {"seconds", medians(times)},
                {"wrong", wrong_}};
    }

private:
    using Look = std::function<void()>;

    std::vector<Buffers> buffers() {
        std::vector<Buffers> all;
        for (std::size_t k = 0; k < layers_; ++k) {
            auto& source = problem_.gradients ? wholes_[k] : pieces_[k];
            auto& target = problem_.gradients ? pieces_[k] : wholes_[k];
            all.push_back({std::as_bytes(std::span(source)), std::as_writable_bytes(std::span(target)), {}});
        }
        return all;
    }

    double measure_transfer(int rounds) {
        RoundTimes times;
        for (int round = 0; round <= rounds; ++round)
            race(times, round, "list", [&] { must(all_->start().value()->wait()); });
        return median(times["list"]);
    }

    // Weights: a row for each of a batch. Gradients: a row of the matrix, summed over a batch.
    [[nodiscard]] Index product_rows() const { return problem_.gradients ? problem_.width : batch_; }

    // A batch so large that its product takes the ratio of the transfer's time.
    void size_product(double transfer) {
        size_until(problem_.ratio * transfer, [&](Index batch) {
            batch_ = batch;
            product_ = problem_.gradients ? std::make_unique<Product>(problem_.width, batch_, problem_.width)
                                          : std::make_unique<Product>(batch_, problem_.width, problem_.width);
            const auto count = static_cast<std::size_t>(batch_ * problem_.width);
            input_.resize(count + layers_);
            for (std::size_t i = 0; i < input_.size(); ++i)
                input_[i] = static_cast<float>((static_cast<Index>(i) + backend_.rank()) % 5) - 2;
            outputs_.assign(problem_.gradients ? 0 : layers_, std::vector<float>(count));
            MPI_Barrier(MPI_COMM_WORLD);
            row_seconds_ = largest(problem_.gradients ? product_->measure(input_.data(), wholes_[0].data())
                                                      : product_->measure(input_.data(), outputs_[0].data()));
            return row_seconds_ * static_cast<double>(product_rows());
        });
    }

    // From weights, and sums, that this rank makes without the library.
    void make_right() {
        if (problem_.gradients) {
            for (std::size_t k = 0; k < layers_; ++k) {
                compute(k, [] {});
                std::vector<float> all(wholes_[k].size());
                MPI_Allreduce(wholes_[k].data(), all.data(), static_cast<int>(all.size()), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
                right_.emplace_back(all.begin() + first_,
                                    all.begin() + first_ + static_cast<std::ptrdiff_t>(pieces_[k].size()));
            }
            return;
        }
        for (std::size_t k = 0; k < layers_; ++k) {
            for (std::size_t i = 0; i < wholes_[k].size(); ++i)
                wholes_[k][i] = weight(static_cast<Index>(k), static_cast<Index>(i));
            compute(k, [] {});
        }
        right_ = outputs_;
    }

    // Computes a layer. With weights its output is the next layer's input; each gradient is made from other elements.
    void compute(std::size_t k, const Look& look) {
        if (problem_.gradients) {
            product_->run(input_.data() + k, wholes_[k].data(), 0, problem_.width, look);
        } else {
            const float* from = k == 0 ? input_.data() : outputs_[k - 1].data();
            product_->run(from, wholes_[k].data(), outputs_[k].data(), 0, batch_, look);
        }
    }

    void serial() {
        for (std::size_t k = 0; k < layers_; ++k) {
            if (problem_.gradients) compute(k, [] {});
            must(single_[k]->start().value()->wait());
            if (!problem_.gradients) compute(k, [] {});
        }
    }

    void pipelined() {
        const auto ticket = all_->start({.offers_withheld = problem_.gradients}).value();
        const auto look = [&] { static_cast<void>(ticket->arrived().value()); };
        for (std::size_t k = 0; k < layers_; ++k) {
            if (!problem_.gradients) must(until_arrived(*ticket, k));
            compute(k, look);
            if (problem_.gradients) must(ticket->offer(k));
        }
        must(ticket->wait());
    }

    void one_after_the_other() {
        const auto all_layers = [&] {
            for (std::size_t k = 0; k < layers_; ++k) compute(k, [] {});
        };
        if (problem_.gradients) all_layers();
        must(all_->start().value()->wait());
        if (!problem_.gradients) all_layers();
    }

    // As programs do it: the next layer is on its way while one computes.
    void by_hand() {
        const auto gather = [&](std::size_t k) {
            MPI_Request request = MPI_REQUEST_NULL;
            const auto count = static_cast<int>(pieces_[k].size());
            MPI_Iallgather(pieces_[k].data(), count, MPI_FLOAT, wholes_[k].data(), count, MPI_FLOAT, MPI_COMM_WORLD,
                           &request);
            return request;
        };
        MPI_Request coming = gather(0);
        for (std::size_t k = 0; k < layers_; ++k) {
            MPI_Wait(&coming, MPI_STATUS_IGNORE);
            if (k + 1 < layers_) coming = gather(k + 1);
            int done = 0;
            compute(k, [&] { MPI_Test(&coming, &done, MPI_STATUS_IGNORE); });
        }
    }

    void spoil() {
        for (auto& one : wholes_) std::ranges::fill(one, -1.0F);
        for (auto& one : outputs_) std::ranges::fill(one, -1.0F);
        if (problem_.gradients)
            for (auto& one : pieces_) std::ranges::fill(one, -1.0F);
    }

    Index wrong_elements() {
        Index wrong = 0;
        for (std::size_t k = 0; k < layers_; ++k) {
            wrong += count_wrong(problem_.gradients ? pieces_[k] : outputs_[k], right_[k]);
            if (problem_.gradients) continue;
            for (std::size_t i = 0; i < wholes_[k].size(); ++i)
                wrong += wholes_[k][i] != weight(static_cast<Index>(k), static_cast<Index>(i)) ? 1 : 0;
        }
        return wrong;
    }

    PipelineProblem problem_;
    Backend& backend_;
    std::size_t layers_;
    std::vector<std::vector<float>> pieces_;
    std::vector<std::vector<float>> wholes_;
    Index first_ = 0;  // element of this rank's piece in the whole
    std::unique_ptr<Executor> executor_;
    std::unique_ptr<Bound> all_;
    std::vector<std::unique_ptr<Bound>> single_;  // of each layer
    Index batch_ = 0;
    std::unique_ptr<Product> product_;
    std::vector<float> input_;
    std::vector<std::vector<float>> outputs_;
    std::vector<std::vector<float>> right_;
    double row_seconds_ = 0;
    Index wrong_ = 0;
};

}  // namespace

nlohmann::json measure(const PipelineProblem& problem, Backend& backend, int rounds) {
    return Pipeline(problem, backend).run(rounds);
}

}  // namespace reshard::overlap
