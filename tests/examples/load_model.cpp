// The example of docs/checkpoints.md: loads the tiles of ranks from a checkpoint, which this program writes first.
#include <mpi.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>

#include "reshard/backends/mpi.hpp"
#include "reshard/files/load.hpp"

namespace {

float sum = 0;

void use(const std::string&, const std::vector<reshard::Index>& shape, std::span<std::byte> bytes) {
    const auto* const elements = reinterpret_cast<const float*>(bytes.data());
    sum = std::accumulate(elements, elements + shape[0] * shape[1], sum);
}

void write_checkpoint() {
    const std::string header = R"({"embed":{"dtype":"F32","shape":[8,2],"data_offsets":[0,64]}}  )";
    const auto size = static_cast<std::uint64_t>(header.size());
    std::vector<float> elements(16);
    std::iota(elements.begin(), elements.end(), 0.0F);
    std::ofstream file("model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof size);
    file << header;
    file.write(reinterpret_cast<const char*>(elements.data()), 64);
}

void load_and_use() {
    // [README load]
    const auto backend = reshard::mpi::backend_of(MPI_COMM_WORLD).value();
    reshard::files::ConvertOptions options;
    options.rules = "target ranks=4\nembed = [ranks, -]\n";
    const auto model = reshard::files::load(*backend, "model.safetensors", options).value();
    for (const auto& tile : model.tiles) use(tile.name, tile.shape, tile.bytes);
    // [README load end]
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto folder = std::filesystem::temp_directory_path() / "reshard_load_model";
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    if (rank == 0) write_checkpoint();
    MPI_Barrier(MPI_COMM_WORLD);
    load_and_use();
    if (rank == 3) std::cout << "rank 3 has " << sum << '\n';  // 12 + 13 + 14 + 15
    MPI_Finalize();
    if (rank == 0) std::filesystem::remove_all(folder);
    return 0;
}
