// What travels by itself: mbarriers in shared memory, bulk copies into it, words stored into the shared memory of a cluster's peers.
D void barrier_init(u64* barrier, u32 arrivals) {
#ifdef FUSEC_SIMT
  simt_mbarrier_init(barrier, arrivals);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(barrier)), "r"(arrivals) : "memory");
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
D void barrier_arrive(u64* barrier) {
#ifdef FUSEC_SIMT
  simt_mbarrier_arrive(barrier);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((u32)__cvta_generic_to_shared(barrier)) : "memory");
#endif
}
// One arrival, and so many bytes that come or came by themselves.
D void barrier_arrive(u64* barrier, u32 bytes) {
#ifdef FUSEC_SIMT
  simt_mbarrier_arrive_expect(barrier, bytes);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(barrier)), "r"(bytes) : "memory");
#endif
}
// What other blocks of the cluster send into shared memory is seen behind this, too. An acquire of the cluster's scope would only clear the L1 beside it,
// which nothing that is sent goes through; CUTLASS waits for what peers send like this.
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

// `bytes` and both addresses are multiples of 16. In pieces of 16 KiB.
D void bulk_load(char* shared, const char* global, u32 bytes, u64* barrier, u64 policy) {
#pragma unroll 1
  for (u32 at = 0; at < bytes; at += 16384) {
    const u32 n = bytes - at < 16384 ? bytes - at : 16384;
#ifdef FUSEC_SIMT
    simt_bulk_load(shared + at, global + at, n, barrier);
#else
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                     (u32)__cvta_generic_to_shared(shared + at)), "l"(global + at), "r"(n), "r"((u32)__cvta_generic_to_shared(barrier)), "l"(policy)
                 : "memory");
#endif
  }
}
// The bytes from .. to of an operand that lies between first and last, in whole 16-byte pieces of memory: what lies beside them comes
// along, but never from outside of the operand. At its own ends single bytes are copied, and zeros beyond. `shared` stands for the piece
// that `from` begins in. Returns the bytes that travel. By one lane, or by `Lanes` that share the single bytes.
template <int Lanes = 1> D u32 bulk_window(char* shared, const char* from, const char* to, const char* first, const char* last, u64* barrier, u64 policy, u32 lane = 0) {
  const char *piece = from - ((u64)from & 15), *begin = piece, *end = to + (-(u64)to & 15);
  auto single = [&](const char* p, const char* stop) {
#pragma unroll 1
    for (p += lane; p < stop; p += Lanes) shared[p - piece] = p >= first && p < last ? *p : 0;
  };
  if (begin < first || end > last) {
    const char* inside = last - ((u64)last & 15);
    if (begin < first) begin += 16;
    if (end > last) end = inside > begin ? inside : begin;
    single(piece, begin);
    single(end, to + (-(u64)to & 15));
#ifdef FUSEC_SIMT
    simt_proxy_fence();
#else
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the slot's next copy comes after these stores
#endif
    if (end == begin) return 0;
  }
  if (Lanes == 1 || lane == 0) bulk_load(shared + (begin - piece), begin, (u32)(end - begin), barrier, policy);
  return (u32)(end - begin);
}

// One word to the same variable of the block with that rank, counted by its barrier.
template <class T> D void send(T* mine, T value, u64* barrier, u32 rank) {
#ifdef FUSEC_SIMT
  simt_st_async(simt_cluster_map(mine, rank), value, simt_cluster_map(barrier, rank));
#else
  u32 to, at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"((u32)__cvta_generic_to_shared(mine)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)__cvta_generic_to_shared(barrier)), "r"(rank));
  if constexpr (sizeof(T) == 8)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to), "l"(value), "r"(at) : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(value), "r"(at) : "memory");
#endif
}
