// Transfers beside products of matrices, layers of a model in a pipeline, and the steps of a plan beside each other,
// each in several ways that take turns. Run under mpirun; overlap.py makes the links and reads the output: one JSON
// line for each problem.
#include <fstream>
#include <sstream>

#include "overlap/common.hpp"
#include "overlap/pipeline.hpp"
#include "overlap/product_bench.hpp"
#include "overlap/steps.hpp"

namespace reshard::overlap {
namespace {

// Lines "gather ROWS WIDTH RATIO [asleep]", "scatter ROWS WIDTH RATIO [asleep]", "layers LAYERS WIDTH RATIO",
// "gradients LAYERS WIDTH RATIO" or "steps MESH SOURCE TARGET".
nlohmann::json measured(std::istringstream line, const Machine& machine, Backend& backend, int rounds) {
    std::string kind;
    line >> kind;
    if (kind == "steps") {
        StepsProblem steps;
        if (line >> steps.mesh >> steps.source >> steps.target) return measure(steps, machine, backend, rounds);
    } else if (kind == "layers" || kind == "gradients") {
        PipelineProblem layers{.gradients = kind == "gradients"};
        if (line >> layers.layers >> layers.width >> layers.ratio) return measure(layers, backend, rounds);
    } else if (kind == "gather" || kind == "scatter") {
        ProductProblem product{.scatter = kind == "scatter"};
        if (line >> product.rows >> product.width >> product.ratio) {
            std::string how;
            product.asleep = line >> how && how == "asleep";
            return measure(product, machine, backend, rounds);
        }
    }
    must(Result<void>(tl::unexpected(Error{Code::syntax, "no problem: " + line.str(), "", 0})));
    return {};
}

int run(const char* machine_path, const char* problems_path, int rounds) {
    std::ifstream file(machine_path);
    std::stringstream text;
    text << file.rdbuf();
    const Machine machine = must(parse_machine(text.str()));
    const auto backend = must(mpi::make_backend(MPI_COMM_WORLD));
    Index wrong = 0;
    std::ifstream problems(problems_path);
    for (std::string line; std::getline(problems, line);) {
        const nlohmann::json found = measured(std::istringstream(line), machine, *backend, rounds);
        wrong += found["wrong"].get<Index>();
        if (backend->rank() == 0) std::cout << found.dump() << std::endl;
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::overlap

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        std::cerr << "overlap MACHINE PROBLEMS ROUNDS\n";
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int status = reshard::overlap::run(argv[1], argv[2], std::stoi(argv[3]));
    MPI_Finalize();
    return status;
}
