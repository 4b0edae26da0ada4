// Row sums of a cluster of 2: a producer warp fills a ring of 3 slots with bulk copies, four warps consume it, and partial sums cross the
// cluster by st.async. Every wait is an mbarrier's.
typedef unsigned u32;
typedef unsigned long long u64;
constexpr int kSlots = 3, kWarps = 4, kPiece = 512;  // floats of one copy
struct Args { const float* x; float* out; int pieces, rows; };  // a row: 2 blocks * pieces * kPiece floats

extern "C" __global__ void g0(const __grid_constant__ Args a) {
  extern __shared__ __align__(128) float ring[];
  __shared__ u64 full[kSlots], empty[kSlots], inbox_bar, part_bar;
  __shared__ float part[kWarps], inbox[2][2];
  u32 rank = simt_cluster_rank(), t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (t == 0) {
    for (int i = 0; i < kSlots; i++) simt_mbarrier_init(full + i, 1), simt_mbarrier_init(empty + i, kWarps);  //mbarriers//
    simt_mbarrier_init(&inbox_bar, 1), simt_mbarrier_init(&part_bar, kWarps);
    simt_mbarrier_fence();
  }
  __syncthreads();                             //init//
  simt_cluster_arrive(), simt_cluster_wait();  //init-peers//
  u32 cluster = blockIdx.x / 2, clusters = gridDim.x / 2;
  if (warp == kWarps) {  // producer
    if (lane == 0) {
      int slot = 0, turn = 0;
      for (int row = cluster; row < a.rows; row += clusters)
        for (int p = 0; p < a.pieces; p++) {
          if (turn) simt_mbarrier_wait(empty + slot, (turn - 1) & 1);  //refill//
          simt_mbarrier_arrive_expect(full + slot, kPiece * 4);        //expect//
          simt_bulk_load(ring + slot * kPiece, a.x + ((size_t)row * 2 + rank) * a.pieces * kPiece + p * kPiece, kPiece * 4, full + slot);  //copy//
          if (++slot == kSlots) slot = 0, turn++;
        }
    }
  } else {
    int slot = 0, turn = 0, parity = 0;
    for (int row = cluster; row < a.rows; row += clusters) {
      float v = 0.f;
      for (int p = 0; p < a.pieces; p++) {
        simt_mbarrier_wait(full + slot, turn & 1);                              //arrived//
        for (int i = t; i < kPiece; i += 32 * kWarps) v += ring[slot * kPiece + i];  //consume//
        __syncwarp();                                                           //all-read//
        if (lane == 0) simt_mbarrier_arrive(empty + slot);
        if (++slot == kSlots) slot = 0, turn++;
      }
      for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
      if (lane == 0) part[warp] = v, simt_mbarrier_arrive(&part_bar);
      if (t == 0) {
        simt_mbarrier_wait(&part_bar, parity);
        v = part[0] + part[1] + part[2] + part[3];
        simt_mbarrier_arrive_expect(&inbox_bar, 8);
        for (u32 k = 0; k < 2; k++)
          simt_st_async(simt_cluster_map(&inbox[parity][rank], k), v, simt_cluster_map(&inbox_bar, k));  //send//
        simt_mbarrier_wait(&inbox_bar, parity);                                                          //received//
        if (rank == 0) a.out[row] = inbox[parity][0] + inbox[parity][1];                                 //total//
      }
      simt_bar_sync(1, 32 * kWarps);  // part is free again
      parity ^= 1;
    }
  }
  simt_cluster_arrive(), simt_cluster_wait();  //end//
}
