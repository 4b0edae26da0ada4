// Clusters of blocks: ranks, barriers, each other's shared memory.
D u32 cluster_rank() {
#ifdef FUSEC_SIMT
  return simt_cluster_rank();
#else
  u32 r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
#endif
}
// For diverged warps, too.
D void cluster_sync() {
#ifdef FUSEC_SIMT
  simt_cluster_arrive();
  simt_cluster_wait();
#else
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}
// The halves of a barrier of the whole cluster, for whole warps, that orders no memory but what a fence in front of it does.
D void cluster_arrive_relaxed() {
#ifdef FUSEC_SIMT
  simt_cluster_arrive();
#else
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
D void cluster_wait() {
#ifdef FUSEC_SIMT
  simt_cluster_wait();
#else
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// The same variable in the shared memory of the block with that rank.
template <class T> D const T* cluster_map(const T* mine, u32 rank) {
#ifdef FUSEC_SIMT
  return (const T*)simt_cluster_map((T*)mine, rank);
#else
  u64 out;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(mine), "r"(rank));
  return (const T*)out;
#endif
}

// Every block's state to every block: `meet` holds one of at most Bytes, twice, in turns, so that one barrier a merge is enough.
template <int Cluster, int Bytes, class A> D void merge_cluster(A& acc, char* meet, int turn) {
  if constexpr (Cluster > 1) {
    A* mine = (A*)(meet + turn * Bytes);
    if (threadIdx.x == 0) acc.put(mine);
    cluster_sync();
    acc.get(cluster_map(mine, threadIdx.x % Cluster));
    butterfly<Cluster>(acc);
  }
}
