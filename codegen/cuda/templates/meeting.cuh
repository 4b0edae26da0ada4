// How the blocks of a cluster that hold a row in registers merge their states (rows_held.cuh): every block sends its state to every
// block, by words that travel by themselves to a slot of their own and are counted by an mbarrier. Nothing waits for what a block still
// has to store: a barrier of the cluster with release is a fence of all global memory, a microsecond behind a row's stores, and held
// group_norm + silu at 0.61 of the copy rate. Slots and barriers are there twice: a block that is ahead cannot be so by two merges, it
// waits for everybody's state in each. Nobody leaves before everything sent to it has come, so nobody need wait for others in the end.
template <int Cluster, int Bytes> struct Meeting {
  enum { kSlot = (Bytes + 7) / 8 * 8, kBytes = 2 * Cluster * kSlot + 16 };
  char* slots;
  u64* arrived;
  u32 turn = 0;
  bool open = false;
  __device__ __forceinline__ explicit Meeting(char* shared) : slots(shared + 16), arrived((u64*)shared) {
    if (threadIdx.x == 0) {
      barrier_init(arrived, 1);
      barrier_init(arrived + 1, 1);
      barrier_init_fence();
    }
    cluster_arrive_relaxed();
  }
  __device__ __forceinline__ int rank() const { return (int)cluster_rank(); }
  // Everybody's barriers are there.
  __device__ __forceinline__ void enter() {
    if (!open) cluster_wait();
    open = true;
  }
  template <class A> __device__ __forceinline__ void merge(A& acc) {
    A* inbox = (A*)(slots + turn % 2 * (Cluster * kSlot));
    u64* barrier = arrived + turn % 2;
    if (threadIdx.x == 0) barrier_arrive(barrier, (u32)(Cluster * sizeof(A)));
    if (threadIdx.x < Cluster) {
      u64 words[sizeof(A) / 8] = {};  // holes of a state travel, too
      acc.put((A*)words);
      u64* to = (u64*)(inbox + cluster_rank());
#pragma unroll
      for (int w = 0; w < (int)(sizeof(A) / 8); ++w) send(to + w, words[w], barrier, threadIdx.x);
    }
    barrier_wait(barrier, turn / 2 & 1);
    ++turn;
    acc.get(inbox + threadIdx.x % Cluster);
    butterfly<Cluster>(acc);
  }
};
