// The emulation itself: what it computes, and which mistakes in a kernel it reports.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "engine/attention/cuda/device.cuh"
#include "engine/attention/cuda/warp_matrix.cuh"

namespace hydrascope::cuda {
namespace {

constexpr std::size_t large = 227 * 1024;

std::string message(const cudaError_t outcome) {
  const char* const text = message_of(outcome);
  return text == nullptr ? "" : text;
}

__global__ void number_threads(int* const to) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  to[block * blockDim.x + threadIdx.x] += static_cast<int>(block * blockDim.x + threadIdx.x);
}

TEST(CudaEmulation, RunsEachThreadOfEachBlockOnce) {
  std::vector<int> numbers(2 * 3 * 4 * block_threads);
  EXPECT_EQ(message(launch(number_threads, dim3(2, 3, 4), 0, nullptr, numbers.data())), "");
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int>(i));
}

// Each thread reads what its neighbour wrote.
__global__ void rotate(const bool synchronised, float* const to) {
  HYDRASCOPE_SHARED_MEMORY(shared);
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (synchronised) __syncthreads();
  to[threadIdx.x] =
      shared[(threadIdx.x + 1) % blockDim.x] + shared[(threadIdx.x + blockDim.x - 1) % blockDim.x];
}

bool rotates(const cuda_emulation::Order order, const bool synchronised) {
  cuda_emulation::set_order(order);
  std::vector<float> result(block_threads);
  EXPECT_EQ(
      message(launch(rotate, dim3(1), block_threads * sizeof(float), nullptr, synchronised, result.data())),
      "");
  cuda_emulation::set_order(cuda_emulation::Order::forward);
  for (int i = 0; i < block_threads; ++i) {
    const int expected = (i + 1) % block_threads + (i + block_threads - 1) % block_threads;
    if (result[static_cast<std::size_t>(i)] != static_cast<float>(expected)) return false;
  }
  return true;
}

TEST(CudaEmulation, ABarrierMattersInEveryOrderOfThreads) {
  using cuda_emulation::Order;
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    EXPECT_TRUE(rotates(order, true));
    EXPECT_FALSE(rotates(order, false)); // shared memory is NaN until it is written
  }
}

__global__ void sum_warps(float* const to) {
  DeviceBlock block;
  DeviceBlock::Local<float> sum(static_cast<float>(threadIdx.x));
  block.sum_of_warp(sum);
  to[threadIdx.x] = sum.value;
}

TEST(CudaEmulation, AddsWithinWarps) {
  std::vector<float> sums(block_threads);
  EXPECT_EQ(message(launch(sum_warps, dim3(1), 0, nullptr, sums.data())), "");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const int warp = static_cast<int>(i) / 32;
    EXPECT_EQ(sums[i], static_cast<float>(496 + 1024 * warp));
  }
}

__global__ void diverge(const int kind) {
  if (kind == 0 && threadIdx.x == 7) return;
  if (kind == 1 && threadIdx.x < 32) __syncthreads();
  if (kind == 2 && threadIdx.x % 2 == 0) __syncwarp();
  if (kind == 3 && threadIdx.x % 32 == 0) return;
  if (kind == 3) __syncwarp();
  __syncthreads();
}

TEST(CudaEmulation, ReportsThreadsThatDivergeAtABarrier) {
  const char* const expected[] = {"threads end while others wait at __syncthreads in block (0, 0, 0)",
                                  "threads wait at different __syncthreads in block (0, 0, 0)",
                                  "a warp diverges at an operation of the whole warp in block (0, 0, 0)",
                                  "a warp diverges at an operation of the whole warp in block (0, 0, 0)", ""};
  for (int kind = 0; kind < 5; ++kind)
    EXPECT_EQ(message(launch(diverge, dim3(1), 0, nullptr, kind)), expected[kind]);
}

__global__ void nothing() {}

TEST(CudaEmulation, HasTheLimitsOfAnH100) {
  EXPECT_EQ(message(cudaLaunchKernel(nothing, dim3(65536), dim3(32), nullptr, 0, nullptr)), "");
  for (const dim3 grid : {dim3(0), dim3(1, 65536), dim3(1, 1, 65536)})
    EXPECT_EQ(message(launch(nothing, grid, 0, nullptr)), "invalid configuration argument");
  EXPECT_EQ(message(launch(nothing, dim3(1), 48 * 1024, nullptr)), "");
  EXPECT_EQ(message(launch(nothing, dim3(1), 48 * 1024 + 1, nullptr)), "invalid argument");
  EXPECT_EQ(
      cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(large) + 1),
      cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(large)),
      cudaSuccess);
  EXPECT_EQ(message(launch(nothing, dim3(1), large, nullptr)), "");
  EXPECT_EQ(message(launch(nothing, dim3(1), large + 1, nullptr)), "invalid argument");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess); // launch() clears it
  const cudaError_t refused = cudaLaunchKernel(nothing, dim3(0), dim3(32), nullptr, 0, nullptr);
  EXPECT_EQ(message(refused), "invalid configuration argument");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess); // and so does message_of()
}

__global__ void write_beyond(const unsigned index) {
  HYDRASCOPE_SHARED_MEMORY(shared);
  if (threadIdx.x == 0) shared[index] = 1;
}

TEST(CudaEmulation, SharedMemoryEndsWhereItIsSaidTo) {
  EXPECT_EQ(message(launch(write_beyond, dim3(1), 40, nullptr, 9u)), "");
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(launch(write_beyond, dim3(1), 40, nullptr, 10u), "heap-buffer-overflow");
#endif
}

// Each thread copies two groups of its own and reads both after it has waited for all but `pending`.
template <int pending>
__global__ void copy_two_groups(const float* const from, const bool there, float* const to) {
  HYDRASCOPE_SHARED_MEMORY(shared);
  const int thread = static_cast<int>(threadIdx.x);
  for (int group = 0; group < 2; ++group) {
    start_copy(shared + (2 * thread + group) * 4, from + group * 4, there);
    end_group_of_copies();
  }
  finish_copies<pending>();
  for (int group = 0; group < 2; ++group) to[2 * thread + group] = shared[(2 * thread + group) * 4 + 3];
}

template <int pending>
std::vector<float> copied(const bool there) {
  alignas(16) float from[8];
  for (int i = 0; i < 8; ++i) from[i] = static_cast<float>(i);
  std::vector<float> to(2 * block_threads);
  EXPECT_EQ(
      message(launch(copy_two_groups<pending>, dim3(2), to.size() * 16, nullptr, from, there, to.data())),
      "");
  return to;
}

TEST(CudaEmulation, CopiesAreThereOnceTheyAreWaitedFor) {
  for (const bool there : {true, false}) {
    const std::vector<float> all = copied<0>(there), first = copied<1>(there), none = copied<2>(there);
    for (std::size_t thread = 0; thread < block_threads; ++thread) {
      EXPECT_EQ(all[2 * thread], there ? 3.0f : 0.0f);
      EXPECT_EQ(all[2 * thread + 1], there ? 7.0f : 0.0f);
      EXPECT_EQ(first[2 * thread], there ? 3.0f : 0.0f);
      EXPECT_TRUE(std::isnan(first[2 * thread + 1]));
      EXPECT_TRUE(std::isnan(none[2 * thread]));
      EXPECT_TRUE(std::isnan(none[2 * thread + 1]));
    }
  }
}

namespace wmma = nvcuda::wmma;

// c = a · b of squares, where b's columns lie one after another if `transposed`.
template <typename T, typename Layout>
__global__ void multiply(const T* const a, const T* const b, const unsigned stride, float* const c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, Layout> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::load_matrix_sync(left, a, stride);
  wmma::load_matrix_sync(right, b, stride);
  wmma::mma_sync(sum, left, right, sum);
  if (threadIdx.x < 32) wmma::store_matrix_sync(c, sum, 20, wmma::mem_row_major);
}

template <typename T, typename Layout>
void expect_product(const bool transposed) {
  constexpr unsigned stride = 24;
  alignas(32) T a[16 * stride];
  alignas(32) T b[16 * stride];
  alignas(32) float c[16 * 20] = {};
  for (unsigned i = 0; i < 16 * stride; ++i) {
    a[i] = T(static_cast<float>(i % 7));
    b[i] = T(static_cast<float>(i % 5));
  }
  EXPECT_EQ(message(launch(multiply<T, Layout>, dim3(1), 0, nullptr, a, b, stride, c)), "");
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 16; ++column) {
      float sum = 1;
      for (unsigned k = 0; k < 16; ++k)
        sum += static_cast<float>(a[row * stride + k]) *
               static_cast<float>(transposed ? b[column * stride + k] : b[k * stride + column]);
      EXPECT_EQ(c[row * 20 + column], sum) << row << ", " << column;
    }
  EXPECT_EQ(message(launch(multiply<T, Layout>, dim3(1), 0, nullptr, a + 8, b, stride, c)),
            "WMMA: a square in memory is not aligned");
  EXPECT_EQ(message(launch(multiply<T, Layout>, dim3(1), 0, nullptr, a, b, stride - 4, c)),
            "WMMA: a square in memory is not aligned");
}

TEST(CudaEmulation, MultipliesSquares) {
  expect_product<__half, wmma::row_major>(false);
  expect_product<__half, wmma::col_major>(true);
  expect_product<__nv_bfloat16, wmma::row_major>(false);
  expect_product<__nv_bfloat16, wmma::col_major>(true);
}

} // namespace
} // namespace hydrascope::cuda
