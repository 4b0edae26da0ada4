// Ring: long rows, many of them. One persistent block a multiprocessor, or a cluster of them for each row; two buffers of shared
// memory, so that the next row arrives by bulk copies while this one is reduced and stored. Rows are handed out by a counter, one
// ahead, because multiprocessors do not get equal shares of the memory; the last cluster sets the counters back.
D void barrier_init(u64* barrier) {
#ifdef FUSEC_SIMT
  simt_mbarrier_init(barrier, 1);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((u32)__cvta_generic_to_shared(barrier)) : "memory");
#endif
}
D void barrier_init_fence() {
#ifdef FUSEC_SIMT
  simt_mbarrier_fence();
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
// One arrival, and so many bytes to come.
D void barrier_expect(u64* barrier, u32 bytes) {
#ifdef FUSEC_SIMT
  simt_mbarrier_arrive_expect(barrier, bytes);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(barrier)), "r"(bytes) : "memory");
#endif
}
D void barrier_wait(u64* barrier, u32 parity) {
#ifdef FUSEC_SIMT
  simt_mbarrier_wait(barrier, parity);
#else
  u32 done;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"((u32)__cvta_generic_to_shared(barrier)), "r"(parity) : "memory");
  } while (!done);
#endif
}
// `bytes` and both addresses are multiples of 16.
D void bulk_load(char* shared, const void* global, u32 bytes, u64* barrier, u64 policy) {
#ifdef FUSEC_SIMT
  simt_bulk_load(shared, global, bytes, barrier);
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                   (u32)__cvta_generic_to_shared(shared)), "l"(global), "r"(bytes), "r"((u32)__cvta_generic_to_shared(barrier)), "l"(policy)
               : "memory");
#endif
}

// Sweeps over a row that has arrived; every lane reads its own vectors.
template <int S, class K, int Threads, int Cluster> struct Ring {
  typedef typename K::Ix Ix;
  static __device__ __forceinline__ void sweep(const typename K::Args& a, typename K::At& t, const char* buffer, Ix part, Ix begin, Ix end,
                                               typename K::Row& row, char* scratch, char* meet, int& turn) {
    if constexpr (S < K::Folds) {
      typename K::template Acc<S> acc;
      acc.zero();
#pragma unroll 2
      for (Ix e = begin + (Ix)threadIdx.x * K::V; e < end; e += (Ix)Threads * K::V) {
        typename K::template Raw<S> raw;
        K::element_at(a, e, t);
        K::load(Int<S>(), a, t, K::V, buffer, part, e - begin, row, raw);
        K::fold(Int<S>(), a, t, K::V, raw, row, acc);
      }
      const int now = turn;
      merge_lanes<Threads, Threads>(acc, scratch, turn);
      merge_cluster<Cluster>(acc, meet, now);
      K::finish(Int<S>(), a, t, K::V, acc, row);
      Ring<S + 1, K, Threads, Cluster>::sweep(a, t, buffer, part, begin, end, row, scratch, meet, turn);
    }
  }
};

template <class K, int Threads, int Cluster> D void ring(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  extern __shared__ __align__(128) char dynamic[];
  __shared__ __align__(16) char scratch[2 * (Threads / 32) * K::AccBytes];
  __shared__ __align__(16) char meet[2 * K::AccBytes];
  __shared__ __align__(8) u64 full[2];
  __shared__ u32 first, ahead[2];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const u32 rank = Cluster > 1 ? cluster_rank() : 0;
  const bool leader = rank == 0 && threadIdx.x == 0;
  const Ix part = (columns / K::V + (Cluster - 1)) / Cluster * K::V, begin = part * (Ix)rank;
  const Ix end = begin + part < columns ? begin + part : columns;
  if (threadIdx.x == 0) {
    barrier_init(full);
    barrier_init(full + 1);
    barrier_init_fence();
  }
  if (leader) {
    const u32 r = atomicAdd(K::counters(a), 2u);
    if constexpr (Cluster > 1) {
      for (int c = 0; c < Cluster; ++c) *(u32*)cluster_map(&first, c) = r;
    } else {
      first = r;
    }
  }
  if constexpr (Cluster > 1) cluster_sync();
  else __syncthreads();
  Ix row_now = first, row_next = row_now + 1;
  int turn = 0;
  typename K::At t{};
  if (threadIdx.x == 0 && row_now < rows) K::issue(a, t, row_now, begin, end, part, dynamic, full, policy);
  for (u32 i = 0; row_now < rows; ++i) {
    const u32 b = i & 1;
    if (threadIdx.x == 0 && row_next < rows) K::issue(a, t, row_next, begin, end, part, dynamic + (b ^ 1) * (part * K::RowBytes), full + (b ^ 1), policy);
    if (leader) {
      // Everybody sees it behind the barrier of the first merge; the slot is used again two rows later.
      const u32 r = atomicAdd(K::counters(a), 1u);
      if constexpr (Cluster > 1) {
        for (int c = 0; c < Cluster; ++c) *(u32*)cluster_map(ahead + b, c) = r;
      } else {
        ahead[b] = r;
      }
    }
    const char* buffer = dynamic + b * (part * K::RowBytes);
    typename K::Row row;
    K::row_at(a, row_now, t);
    K::row(a, t, K::V, row);
    barrier_wait(full + b, i >> 1 & 1);
    Ring<0, K, Threads, Cluster>::sweep(a, t, buffer, part, begin, end, row, scratch, meet, turn);
    if constexpr (K::Stores) {
#pragma unroll 2
      for (Ix e = begin + (Ix)threadIdx.x * K::V; e < end; e += (Ix)Threads * K::V) {
        typename K::template Raw<K::Folds> raw;
        K::element_at(a, e, t);
        K::load(Int<K::Folds>(), a, t, K::V, buffer, part, e - begin, row, raw);
        K::store(a, t, K::V, raw, row);
      }
    }
    if (leader) K::row_store(a, t, 1, row);
    row_now = row_next;
    row_next = *(volatile u32*)(ahead + b);
    __syncthreads();  // the buffer has been read
  }
  if (leader && atomicAdd(K::counters(a) + 1, 1u) == gridDim.x / Cluster - 1) {
    atomicExch(K::counters(a), 0u);
    atomicExch(K::counters(a) + 1, 0u);
  }
  if constexpr (Cluster > 1) cluster_sync();  // a peer may still read from here
}
