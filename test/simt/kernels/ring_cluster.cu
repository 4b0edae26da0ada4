// The ring as long rows want it: rows come from a counter, a producer warp fills slots, compute warps sum a row and later subtract its mean,
// a publisher warp sends the block's partial sum to every peer, a gatherer warp adds what arrives. No block barrier in the loop: mbarriers
// order everything, some only through three others.
typedef unsigned u32;
typedef unsigned long long u64;
constexpr int kSlots = 5, kPieces = 2, kPiece = 256, kWarps = 2, kResults = 4, kQueue = 4;  // pieces of a row in a block; floats
struct Args { const float* x; float* y; u32* counter; int rows; };                          // a row: cluster * kPieces * kPiece

extern "C" __global__ void g0(const __grid_constant__ Args a) {
  extern __shared__ __align__(128) float ring[];
  __shared__ u64 full[kSlots], empty[kSlots], summed[kResults], arrived[kResults], final_[kResults], queued[kQueue];
  __shared__ float part[kResults][kWarps], inbox[kResults][4], mean[kResults];
  __shared__ int queue[kQueue];
  int t = threadIdx.x, warp = t / 32, lane = t % 32, rank = simt_cluster_rank(), peers = simt_cluster_size();
  if (t == 0) {
    for (int i = 0; i < kSlots; i++) simt_mbarrier_init(full + i, 1), simt_mbarrier_init(empty + i, kWarps);
    for (int i = 0; i < kResults; i++)
      simt_mbarrier_init(summed + i, kWarps), simt_mbarrier_init(arrived + i, 1), simt_mbarrier_init(final_ + i, 1);
    for (int i = 0; i < kQueue; i++) simt_mbarrier_init(queued + i, 1);
    simt_mbarrier_fence();
  }
  __syncthreads();
  simt_cluster_arrive(), simt_cluster_wait();
  auto row_at = [&](int i) {
    simt_mbarrier_wait(queued + i % kQueue, i / kQueue & 1);  //row//
    return *(volatile int*)(queue + i % kQueue);
  };
  size_t length = (size_t)peers * kPieces * kPiece;
  if (warp == kWarps) {  // producer
    if (lane == 0) {
      int next = rank == 0 ? (int)atomicAdd(a.counter, 1u) : 0, copies = 0;
      for (int i = 0;; i++) {
        simt_mbarrier_arrive_expect(queued + i % kQueue, 4);
        if (rank == 0) {
          int row = next < a.rows ? next : -1;
          for (int k = 0; k < peers; k++)
            simt_st_async(simt_cluster_map(queue + i % kQueue, k), row, simt_cluster_map(queued + i % kQueue, k));  //give//
          if (row >= 0) next = (int)atomicAdd(a.counter, 1u);
        }
        int row = row_at(i);
        if (row < 0) break;
        for (int s = 0; s < kPieces; s++, copies++) {
          int slot = copies % kSlots;
          if (copies >= kSlots) simt_mbarrier_wait(empty + slot, copies / kSlots - 1 & 1);  //refill//
          simt_mbarrier_arrive_expect(full + slot, kPiece * 4);
          simt_bulk_load(ring + slot * kPiece, a.x + row * length + (rank * kPieces + s) * kPiece, kPiece * 4, full + slot);  //copy//
        }
      }
    }
  } else if (warp == kWarps + 1) {  // publisher
    for (int i = 0; row_at(i) >= 0; i++) {
      int r = i % kResults;
      simt_mbarrier_wait(summed + r, i / kResults & 1);  //summed//
      float v = part[r][0] + part[r][1];
      if (lane < peers) simt_st_async(simt_cluster_map(&inbox[r][rank], lane), v, simt_cluster_map(arrived + r, lane));  //send//
      __syncwarp();
    }
  } else if (warp == kWarps + 2) {  // gatherer
    for (int i = 0; row_at(i) >= 0; i++) {
      int r = i % kResults;
      if (lane == 0) simt_mbarrier_arrive_expect(arrived + r, peers * 4);
      __syncwarp();
      simt_mbarrier_wait(arrived + r, i / kResults & 1);  //received//
      float v = lane < peers ? inbox[r][lane] : 0.f;      //inbox//
      for (int o = 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
      if (lane == 0) mean[r] = v / (float)length, simt_mbarrier_arrive(final_ + r);
      __syncwarp();
    }
  } else {
    for (int i = 0;; i++) {
      int row = row_at(i), r = i % kResults;
      if (row < 0) break;
      float v = 0.f;
      for (int s = 0; s < kPieces; s++) {
        int copy = i * kPieces + s;
        simt_mbarrier_wait(full + copy % kSlots, copy / kSlots & 1);                                     //full//
        for (int k = t; k < kPiece; k += 32 * kWarps) v += ring[copy % kSlots * kPiece + k];             //sum//
      }
      for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
      if (lane == 0) part[r][warp] = v, simt_mbarrier_arrive(summed + r);                                //part//
      simt_mbarrier_wait(final_ + r, i / kResults & 1);                                                  //final//
      float m = mean[r];                                                                                 //mean//
      for (int s = 0; s < kPieces; s++) {
        int slot = (i * kPieces + s) % kSlots;
        for (int k = t; k < kPiece; k += 32 * kWarps)
          a.y[row * length + (rank * kPieces + s) * kPiece + k] = ring[slot * kPiece + k] - m;           //store//
        __syncwarp();                                                                                    //all-read//
        if (lane == 0) simt_mbarrier_arrive(empty + slot);
      }
    }
  }
  simt_cluster_arrive(), simt_cluster_wait();
}
