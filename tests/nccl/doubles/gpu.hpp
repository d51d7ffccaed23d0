// Calls of the double of libcudart beyond CUDA's own, for tests and for the double of libnccl. Tests find them by name
// at run time, so the same program also runs on the real libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {
/// Runs fn(arg) in the order of the stream. If the stream is being captured, runs it at every launch of the graph.
void gpu_double_enqueue(cudaStream_t stream, void (*fn)(void*), void* arg, void (*drop)(void*));

/// The device that owns [address, address + bytes), if this lies in one allocation; otherwise -1.
int gpu_double_owner(const void* address, std::size_t bytes);

/// Allocates memory of a device without a pointer, like a communicator. False if the device has too little.
bool gpu_double_reserve(int device, std::size_t bytes);
void gpu_double_release(int device, std::size_t bytes);

void gpu_double_set_capacity(int device, std::size_t bytes);
std::size_t gpu_double_live_bytes(int device);
std::size_t gpu_double_peak_bytes(int device);  ///< since the last set_capacity

/// While on, counts this thread's calls that allocate, free or wait for a device.
void gpu_double_watch(bool on);
int gpu_double_counted();

/// A random number below `below`, to shuffle times and orders.
unsigned gpu_double_draw(unsigned below);

/// Prints a mistake on stderr and counts it. A real device has no such check and stays silent.
void gpu_double_complain(const char* what);
int gpu_double_complaints();

/// The launches of a kernel since the program started, by name; 0 if it was never launched.
int gpu_double_launches(const char* kernel);
}
