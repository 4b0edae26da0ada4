// Rows whose beginnings lie anywhere between 16-byte pieces of memory. Whole rows follow each other without gaps, so a tile of them is
// one run of memory: it comes into shared memory as aligned pieces, lanes take single elements (or short vectors) from there, put results
// in their place, and the run leaves as aligned pieces. A team shares a tile: a warp, or the block where a row takes more than 32 lanes.
// Slots - 1 tiles are under way while one is worked on. A group of lanes has R rows of a tile: one behind the other, which spreads them over
// the banks, or, where lanes store to memory themselves or rows are so short that their results count, those beside its neighbours'.
D void copy_piece(char* shared, const char* global, u64 policy) {
#ifdef FUSEC_SIMT
  simt_cp_async(shared, global, 16, 16);
#else
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(shared)), "l"(global), "l"(policy) : "memory");
#endif
}
D void copies_end() {
#ifdef FUSEC_SIMT
  simt_cp_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// All groups of this thread's copies but the last `Left` have come.
template <int Left> D void copies_wait() {
#ifdef FUSEC_SIMT
  simt_cp_async_wait(Left);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

template <int E> D void copy_element(char* to, const char* from) {
  Words<E> w;
  clear(w);
  fetch_one<E>(w, 0, from);
  put_one<E>(to, w, 0);
}

// A run of elements of E bytes into shared memory, where `to` stands for the piece that it begins in; what shares its first and last piece comes
// along, but nothing from behind the operand's end.
template <int E, int Team> D void get_run(char* to, const char* from, u32 bytes, const char* end, int thread, u64 policy) {
  const u32 lead = (u32)(u64)from & 15, span = lead + bytes;
  const char* piece = from - lead;
  const u32 whole = piece + (span + 15) <= end ? (span + 15) & ~15u : (u32)(end - piece) & ~15u;
#pragma unroll 4
  for (u32 at = (u32)thread * 16; at < whole; at += Team * 16) copy_piece(to + at, piece + at, policy);
  const u32 at = whole + (u32)thread * E;  // less than a piece is left
  if (at < span) copy_element<E>(to + at, piece + at);
}
// The way back: both lie alike between 16-byte pieces.
template <int E, int Team> D void put_run(char* to, const char* from, u32 bytes, int thread) {
  const u32 before = (u32)(-(u64)to & 15), head = before < bytes ? before : bytes, tail = head + (bytes - head) / 16 * 16;
#pragma unroll 4
  for (u32 at = head + (u32)thread * 16; at < tail; at += Team * 16) *(uint4*)(to + at) = *(const uint4*)(from + at);
  const u32 at = (u32)thread * E;  // less than a piece at each end
  if (at < head) copy_element<E>(to + at, from + at);
  if (tail + at < bytes) copy_element<E>(to + tail + at, from + tail + at);
}
// Zeros.
template <int Team> D void pad_run(char* from, const char* end, int thread) {
  for (char* p = from + thread; p < end; p += Team) *p = 0;
}

template <class K, int Lanes, int Steps, int Threads, int R, int Slots> D void rows_tiled(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  constexpr int kTeam = Lanes > 32 ? Threads : 32, kTeams = Threads / kTeam, kGroups = kTeam / Lanes, kTile = kGroups * R;
  extern __shared__ __align__(128) char dynamic[];
  __shared__ __align__(16) char scratch[Lanes > 32 ? 2 * (Threads / 32) * K::AccBytes : 16];
  Meeting<1, K::AccBytes, false> alone(scratch);
  const int team = threadIdx.x / kTeam, thread = threadIdx.x % kTeam, lane = thread % Lanes;
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const u32 slot_bytes = K::slot_bytes(a, kTile);
  char* const slots = dynamic + (u32)(team * Slots) * slot_bytes;
  auto together = [] {
    if constexpr (kTeam == 32) __syncwarp();
    else __syncthreads();
  };
  auto rows_from = [&](Ix first) { return first + kTile < rows ? (Ix)kTile : rows - first; };
  const Ix stride = (Ix)gridDim.x * (kTeams * kTile);
  Ix first = ((Ix)blockIdx.x * kTeams + team) * kTile, next = first;
  int turn = 0, slot = 0, next_slot = 0, ahead = 0;
  // Parameters of the columns that are kept in registers: a lane meets the same columns in every row.
  typename K::Late late[Steps];
  if constexpr (K::Early) {
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, 0, t);
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const Ix e = (Ix)(s * Lanes + lane) * K::V;
      if (K::Exact || e < columns) {
        K::element_at(a, e, t);
        K::early(a, t, K::V, row, late[s]);
      }
    }
  }
  while (first < rows) {
    // At first Slots - 1 tiles, then one into the slot that the tile before has left.
    if (next < rows) K::get_tile(a, kTile, next * columns, rows_from(next) * columns, slots + next_slot * slot_bytes, thread, policy, Int<kTeam>());
    copies_end();
    next += stride;
    if (++next_slot == Slots) next_slot = 0;
    if (++ahead < Slots) continue;
    copies_wait<Slots - 1>();
    char* const tile = slots + slot * slot_bytes;
    const Ix count = rows_from(first);
    // For lanes without a row; for the word that a window ends in.
    if (K::Windows ? first + count == rows : kTile > 1 && Lanes <= 32 && count < kTile)
      K::pad_tile(a, kTile, first * columns, count * columns, tile, thread, Int<kTeam>());
    together();
#pragma unroll 1
    for (int r = 0; r < R; ++r) {
      // Lanes without a row store nothing: barriers and shuffles need everybody.
      const Ix number = K::Puts || (!K::Stores && Lanes >= (K::Windows ? 2 : 4)) ? (Ix)(thread / Lanes) * R + r : (Ix)r * kGroups + thread / Lanes;
      const bool live = number < count;
      if (Lanes > 32 && !live) break;
      typename K::At t{};
      t.tile = tile;
      t.first = first * columns;
      t.at = (K::Windows && !live ? count - 1 : number) * columns;
      K::row_at(a, live ? first + number : rows - 1, t);
      typename K::Row row;
      K::row(a, t, K::V, row);
      Ix skew = 0;
      if constexpr (K::Windows) skew = K::skew(a, t);
      typename K::Keep keep[Steps];
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        const Ix e = (Ix)(s * Lanes + lane) * K::V - skew;
        if (K::Exact || is_inside<K, Lanes * K::V>(s, columns) || e < columns) {
          typename K::template Raw<0> raw;
          K::element_at(a, e, t);
          K::load(Int<0>(), a, t, K::V, policy, row, raw);
          K::cut(a, t, raw, row, keep[s]);
        }
      }
      Held<0, K, Lanes, Steps, Threads, 1, 1>::sweep(a, &t, lane, columns, &keep, &row, scratch, turn, alone);
      if constexpr (K::Stores) {
        if (live) {
#pragma unroll
          for (int s = 0; s < Steps; ++s) {
            const Ix e = (Ix)(s * Lanes + lane) * K::V;
            if (K::Exact || e < columns) {
              K::element_at(a, e, t);
              if constexpr (K::Folds > 0 && K::Hides) K::hide(a, keep[s]);
              K::store(a, t, K::V, keep[s], late[s], row);
            }
          }
        }
      }
      if constexpr (K::RowStores)
        if (live && lane == 0) K::row_store(a, t, 1, row);
    }
    if constexpr (K::Puts) {
      together();
      K::put_tile(a, kTile, first * columns, count * columns, tile, thread, Int<kTeam>());
    }
    first += stride;
    together();
    if (++slot == Slots) slot = 0;
  }
  if constexpr (Slots > 1) copies_wait<0>();  // groups without a copy
}
