// What tests ask of the double of libcudart beyond CUDA's own calls, and what the double of libnccl builds on. Tests
// find these by name at run time, so that the same program also runs on the real libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {
/// Runs fn(arg) in the order of the stream; when the stream is being captured, at every launch of the graph.
void gpu_double_enqueue(cudaStream_t stream, void (*fn)(void*), void* arg, void (*drop)(void*));

/// The device that owns [address, address + bytes), all of it one allocation; -1 when there is none.
int gpu_double_owner(const void* address, std::size_t bytes);

/// Takes memory of a device that no pointer names, as a communicator does. False when there is not that much.
bool gpu_double_reserve(int device, std::size_t bytes);
void gpu_double_release(int device, std::size_t bytes);

void gpu_double_set_capacity(int device, std::size_t bytes);
std::size_t gpu_double_live_bytes(int device);
std::size_t gpu_double_peak_bytes(int device);  ///< since the last set_capacity

/// While watched, calls of this thread that allocate, free or wait for a device are counted.
void gpu_double_watch(bool on);
int gpu_double_counted();

/// A number that shuffles: how long things take, and which of several goes first.
unsigned gpu_double_draw(unsigned below);

/// Says what was done wrong on stderr, and counts it. Nothing of the like happens on a real device: there it is silent.
void gpu_double_complain(const char* what);
int gpu_double_complaints();

/// Kernels launched since the program started, by name; 0 for names that were never launched.
int gpu_double_launches(const char* kernel);
}
