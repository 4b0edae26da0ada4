// Ring: long rows. Persistent blocks, or clusters of them for each row; rows are handed out by a counter, because multiprocessors do
// not get equal shares of the memory. Or teams (team.cuh), which take rows in turns. Each warp has one role, and mbarriers order everything: there is
// no block barrier in the loop.
//
//   producer    takes rows from the counter, tells the block (and its peers), and copies slices of them into a ring of slots
//   compute     fold a row's slices, give their states to the publisher; later store from the same slots, which are then free
//   publisher   merges the states of the block's warps and sends the result to every block of the cluster, or posts it for the team
//   gatherer    merges what the blocks sent (clusters and teams)
//   parameters  copies the parameters of the block's columns into slots of their own, where K::Columns of them stand there
//
// A block's part of a row is `Slices` slices, each a slot long. Ahead: so many rows more are folded before this one is stored. K::Kept: a
// row stays in its slots from the first sweep to the last; otherwise each sweep copies it again, from the L2 after the first. Without
// K::Copies lanes load from memory themselves: operands that bulk copies cannot take, by the same lanes and with the same bits.
// A block meets the same columns in every row: with a slot for each slice their parameters are copied once and stay, with fewer (ColumnSlots)
// they come again for each row, from the L2, and only the last sweep uses them.
template <int Slots> struct Turn {  // a slot, and which time around
  u32 slot, parity;
  __device__ __forceinline__ void next() {
    if (++slot == Slots) slot = 0, parity ^= 1;
  }
};

// B bytes of elements of E bytes that begin at any element, at the same place between 16-byte pieces for all lanes: only words that hold some of them are read.
template <int E, int B> D void fetch_anywhere(Words<B>& r, const char* p) {
  if constexpr (B % 16) {
    fetch<E, kPlain>(r, p, 0);
  } else {
#pragma unroll
    for (int k = 0; k < B; k += 16) {
      const u32 at = (u32)(u64)(p + k) & 15;
      const char* word = p + k - at % 4;
      Words<16> w;
      if (at < 4) fetch<16, kPlain>(w, word, 0);
      else if (at / 4 == 2) fetch<8, kPlain>(w, word, 0);
      else {
        w.w[0] = load4<kPlain>(word, 0), w.w[3] = load4<kPlain>(word + 12, 0);
        const uint2 q = load8<kPlain>(word + 4, 0);
        w.w[1] = q.x, w.w[2] = q.y;
      }
      if (E < 4 && at % 4) {
        const u32 next = load4<kPlain>(word + 16, 0), bit = at % 4 * 8;
#pragma unroll
        for (int i = 0; i < 4; ++i) w.w[i] = (u32)(((u64)(i < 3 ? w.w[i + 1] : next) << 32 | w.w[i]) >> bit);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) r.w[k / 4 + i] = w.w[i];
    }
  }
}

template <bool B> struct Flag {
  static constexpr bool value = B;
};

template <class K, int Threads, int Cluster, int Steps, int Slots, int Slices, int Ahead, int ColumnSlots, int Team> struct Ring {
  typedef typename K::Ix Ix;
  typedef typename K::Args Args;
  typedef typename K::At At;
  typedef typename K::Row Row;
  // States in flight: more than rows between the fastest warp and the slowest, twice the rows ahead and two. The queue holds more rows than slots do.
  enum { kWarps = Threads / 32, kResults = Ahead > 3 ? 16 : 8, kQueue = 32, kAhead = K::Kept && K::Folds == 1 ? Ahead : 0,
         Last = K::Stores ? K::Folds : K::Folds - 1, kStay = ColumnSlots >= Slices,
         kBoard = words_of_board((int)K::AccBytes / 4, Team), kWords = K::Windows && K::Window > K::V,
         kWholes = kWords || K::Fills };  // may of a whole slice (in_slice) only a lane's last vector be missing?
  enum : u32 { kDone = 0xffffffffu };
  struct Shared {
    u64 full[Slots], empty[Slots], columns_full[ColumnSlots], columns_empty[ColumnSlots], folded[kResults], arrived[kResults], merged[kResults], queued[kQueue];
    __align__(16) char states[kResults][kWarps][K::AccBytes];
    __align__(16) char inbox[kResults][Cluster][K::AccBytes];
    __align__(16) char result[kResults][K::AccBytes];
    __align__(16) u64 outbox[K::AccBytes / 8];
    u32 queue[kQueue];
  };

  const Args& a;
  Shared& sh;
  char* slots;
  const u64 policy;
  const Ix rows, columns;
  const u32 rank, lane;   // rank: among the blocks of a row
  Ix part, slice;         // elements of a row for a block and for a slot: whole vectors, whole 16-byte pieces of every operand
  Turn<Slots> early, late;  // slots of the first sweep, and of those that come back to them
  Turn<ColumnSlots> beside; // slots of parameters that come again
  typename K::template Raw<K::Folds> held[K::Holds ? Steps : 1];  // parameters of the block's columns in registers

#define RD __device__ __forceinline__
  RD Ring(const Args& args, Shared& shared, char* dynamic)
      : a(args), sh(shared), slots(dynamic), policy(K::policy(args)), rows(K::rows(args)), columns(K::columns(args)),
        rank(Team > 1 ? blockIdx.x % Team : Cluster > 1 ? cluster_rank() : 0), lane(threadIdx.x % 32), early{0, 0}, late{0, 0}, beside{0, 0} {
    const Ix span = columns + (K::Window - 1);
    part = whole(span, Team > 1 ? Team : Cluster);
    slice = whole(part, Slices);
  }
  static RD Ix whole(Ix n, Ix by) { return ((n + by - 1) / by + K::Granule - 1) / K::Granule * K::Granule; }
  RD char* slot_at(u32 slot) { return slots + slot * (u32)(slice * K::RowBytes + K::LeadBytes); }
  RD char* columns_at(u32 slot) { return slot_at(Slots) + slot * (u32)(slice * K::ColumnBytes + K::ColumnLeadBytes); }

  // Row number i of this cluster or team.
  RD u32 row_at(u32 i) {
    if constexpr (Team > 1) return row_of_turn(i);
    barrier_wait<(Cluster > 1)>(sh.queued + i % kQueue, i / kQueue & 1);
    return sh.queue[i % kQueue];
  }
  // The same, known already.
  RD u32 row_again(u32 i) { return Team > 1 ? row_of_turn(i) : sh.queue[i % kQueue]; }
  RD u32 row_of_turn(u32 i) {
    const u64 row = blockIdx.x / Team + (u64)i * (gridDim.x / Team);
    return row < (u64)rows ? (u32)row : kDone;
  }
  RD Ix begin_of(const At& t) { return part * (Ix)rank - K::skew(a, t); }
  RD Ix end_of(Ix begin) { return begin + part < columns ? begin + part : columns; }
  static RD int count_of(Ix e, Ix end) { return K::Full || end - e >= K::V ? (int)K::V : (int)(end - e); }

  // --- producer ---------------------------------------------------------------------------------------------------------------
  RD void produce() {
    u32* counters = K::counters(a);
    u32 next = Team == 1 && rank == 0 ? atomicAdd(counters, 1u) : 0;
    const u64 again = K::Kept ? policy : K::policy_of_last(a);
    for (u32 i = 0;; ++i) {
      // A row is taken as late as possible: when there is room for its first slice, or none but two are under way.
      if constexpr (K::Copies) barrier_wait<false>(sh.empty + early.slot, early.parity ^ 1);
      else if (i >= 2) wait_merged((i - 1) * K::Folds - 1);
      if constexpr (Cluster > 1) barrier_arrive(sh.queued + i % kQueue, 4u);
      if (Team == 1 && rank == 0) {
        const u32 row = next < (u64)rows ? next : kDone;
        if constexpr (Cluster > 1) {
          for (u32 c = 0; c < Cluster; ++c) send(sh.queue + i % kQueue, row, sh.queued + i % kQueue, c);
        } else {
          sh.queue[i % kQueue] = row;
          barrier_arrive(sh.queued + i % kQueue);
        }
        if (row != kDone) next = atomicAdd(counters, 1u);
      }
      const u32 row = row_at(i);
      if (row == kDone) break;
      if constexpr (K::Copies) {
        At t{};
        K::row_at(a, (Ix)row, t);
        const Ix begin = begin_of(t), end = end_of(begin);
        for (int sweep = 0; sweep <= (K::Kept ? 0 : Last); ++sweep)
          for (int s = 0; s < Slices; ++s) {
            if (sweep + s) barrier_wait<false>(sh.empty + early.slot, early.parity ^ 1);
            const Ix from = begin + s * slice, to = from + slice < end ? from + slice : end;
            K::issue(a, t, from, to, slice, slot_at(early.slot), sh.full + early.slot, sweep == Last ? again : policy);
            early.next();
          }
      }
    }
    if (Team == 1 && rank == 0 && atomicAdd(counters + 1, 1u) == gridDim.x / Cluster - 1) {
      atomicExch(counters, 0u);
      atomicExch(counters + 1, 0u);
    }
  }

  // --- parameters -----------------------------------------------------------------------------------------------------------------
  // All lanes of the warp. Rows that begin anywhere need a granule on both sides of a slice.
  RD void issue_columns(int s, u32 slot) {
    const Ix margin = K::Windows ? K::Granule : 0, first = part * (Ix)rank + s * slice - margin, end = first + slice + 2 * margin;
    K::issue_columns(a, first, first < 0 ? 0 : first, end < columns ? end : columns, slice, columns_at(slot), sh.columns_full + slot, policy);
  }
  RD void bring_columns() {
    if constexpr (kStay) {
      for (int s = 0; s < Slices; ++s) issue_columns(s, s);
    } else {
      for (u32 i = 0; row_at(i) != kDone; ++i)
        for (int s = 0; s < Slices; ++s) {
          barrier_wait<false>(sh.columns_empty + beside.slot, beside.parity ^ 1);
          issue_columns(s, beside.slot);
          beside.next();
        }
    }
  }

  // --- publisher and gatherer: state q = row * Folds + sweep ----------------------------------------------------------------------
  RD void wait_merged(u32 q) { barrier_wait<false>(sh.merged + q % kResults, q / kResults & 1); }
  template <int S> RD void publish(u32 q) {
    typedef typename K::template Acc<S> Acc;
    const u32 r = q % kResults;
    barrier_wait<false>(sh.folded + r, q / kResults & 1);
    Acc acc;
    if constexpr ((kWarps & (kWarps - 1)) == 0) {
      acc.get((const Acc*)sh.states[r] + lane % kWarps);
      meet<kWarps>(acc);
    } else {
      acc.zero();
      if (lane < kWarps) acc.get((const Acc*)sh.states[r] + lane);
      meet<32>(acc);
    }
    if constexpr (Cluster > 1) {
      if (lane == 0) acc.put((Acc*)sh.outbox);
      __syncwarp();
      u64* to = (u64*)((Acc*)sh.inbox[r] + rank);
      if (lane < Cluster)
        for (u32 w = 0; w < sizeof(Acc) / 8; ++w) send(to + w, sh.outbox[w], sh.arrived + r, lane);
    } else if constexpr (Team > 1) {
      if (lane == 0) acc.put((Acc*)sh.outbox);
      __syncwarp();
      post_state<Team, Acc>(board_at(q), sh.outbox, rank, q + 1);
      if (lane == 0) barrier_arrive(sh.arrived + r);  // the states of the warps have been read
    } else if (lane == 0) {
      acc.put((Acc*)sh.result[r]);
      barrier_arrive(sh.merged + r);
    }
    __syncwarp();
    if constexpr (S + 1 < K::Folds) publish<S + 1>(q + 1);
  }
  template <int S> RD void gather(u32 q) {
    typedef typename K::template Acc<S> Acc;
    const u32 r = q % kResults;
    Acc acc;
    if constexpr (Team > 1) {
      barrier_wait<false>(sh.arrived + r, q / kResults & 1);
      collect_states<Team>(board_at(q), q + 1, acc);
      meet<32>(acc);
    } else {
      if (lane == 0) barrier_arrive(sh.arrived + r, (u32)(Cluster * sizeof(Acc)));
      barrier_wait<true>(sh.arrived + r, q / kResults & 1);
      if constexpr ((Cluster & (Cluster - 1)) == 0) {
        acc.get((const Acc*)sh.inbox[r] + lane % Cluster);
        meet<Cluster>(acc);
      } else {
        acc.zero();
        if (lane < Cluster) acc.get((const Acc*)sh.inbox[r] + lane);
        meet<32>(acc);
      }
      __syncwarp();
    }
    if (lane == 0) {
      acc.put((Acc*)sh.result[r]);
      barrier_arrive(sh.merged + r);
    }
    if constexpr (S + 1 < K::Folds) gather<S + 1>(q + 1);
  }

  // Of a team: where its blocks post state q.
  RD u64* board_at(u32 q) { return boards_at(K::counters(a)) + (blockIdx.x / Team * kResults + q % kResults) * kBoard; }

  // Merges over `Lanes` neighbouring lanes.
  template <int Lanes, class A> static RD void meet(A& acc) {
    if constexpr (K::Together) acc.template meet<Lanes>();
    else butterfly<Lanes>(acc);
  }

  // --- compute ------------------------------------------------------------------------------------------------------------------
  // Sweep S over the block's part of a row: its slices from `turn` on, each with a lane's vectors of it. The last sweep that reads a slot gives it back.
  template <int S, class Each> RD void sweep(At& t, const Row& row, Turn<Slots>& turn, Each each) {
    const Ix begin = begin_of(t), end = end_of(begin);
    typename K::template Raw<S> next[Steps];
    if constexpr (loads_ahead<S>()) load_ahead<S>(t, begin, end, next);
#pragma unroll 1
    for (int s = 0; s < Slices; ++s) {
      const Ix from = begin + s * slice, to = from + slice < end ? from + slice : end;
      typename K::template Raw<S> raw[Steps];
      if constexpr (loads_ahead<S>()) {
#pragma unroll
        for (int j = 0; j < Steps; ++j) raw[j] = next[j];
        if (s + 1 < Slices) load_ahead<S>(t, from + slice, end, next);
      }
      if constexpr (K::Copies && (S == 0 || !K::Kept)) barrier_wait<false>(sh.full + turn.slot, turn.parity);
      const char* slot = slot_at(turn.slot);
      u32 taken = 0;
      in_loads(from, to, [&](auto whole) {
#pragma unroll
        for (int j = 0; j < Steps; ++j) {
          const Ix at = vector(j), e = from + at;
          if (there<whole.value>(j, e, to)) {
            vector_at(from, j, t);
            const int n = kWords && whole.value ? (int)K::V : count_of(e, columns);
            if constexpr (K::Copies) {
              K::load(Int<S>(), a, t, n, slot, slice, at, row, raw[j]);
              taken |= K::taken(Int<S>(), raw[j]);
            } else {
              K::load(Int<S>(), a, t, n, policy, row, raw[j]);
            }
          }
        }
      });
      if constexpr (K::Copies) {
        if constexpr (S == Last || !K::Kept) {
          __syncwarp();
          // What was loaded must be in registers before the slot is given back: ptxas lets the arrival pass loads that still wait behind others (seen in
          // first calls, whose parameters miss the TLB: a slot was overwritten before it was read). So the arrival depends on the words.
          if (lane == 0) barrier_arrive(sh.empty + turn.slot + (taken & K::zero(a)));
        }
        turn.next();
      }
      if constexpr (uses_columns<S>()) {
        const u32 at = kStay ? s : beside.slot;
        barrier_wait<false>(sh.columns_full + at, kStay ? 0 : beside.parity);
        taken = 0;
        each(from, to, raw, columns_at(at), taken);
        if constexpr (!kStay) {
          __syncwarp();
          if (lane == 0) barrier_arrive(sh.columns_empty + at + (taken & K::zero(a)));
          beside.next();
        }
      } else {
        each(from, to, raw, slot, taken);
      }
    }
  }
  // Parameters that lanes load themselves are asked for a slice ahead of their use, or once, where a row has one slice and registers hold them.
  template <int S> static RD constexpr bool loads_ahead() { return K::LoadsAhead && !K::Holds && S == K::Folds; }
  template <int S> RD void load_ahead(At& t, Ix from, Ix end, typename K::template Raw<S> (&raw)[Steps]) {
    const Ix to = from + slice < end ? from + slice : end;
    in_loads(from, to, [&](auto whole) {
#pragma unroll
      for (int j = 0; j < Steps; ++j) {
        const Ix e = from + vector(j);
        if (there<whole.value>(j, e, to)) {
          vector_at(from, j, t);
          K::ahead(Int<S>(), a, t, kWords && whole.value ? (int)K::V : count_of(e, columns), raw[j]);
        }
      }
    });
  }
  template <int S> static RD constexpr bool uses_columns() { return K::ColumnsOf >> S & 1; }
  // The parameters beside a vector, just before they are used: until then they wait in shared memory, or in registers as they lie in memory.
  template <int S> RD void columns_beside(const At& t, int n, const char* columns_at, int j, typename K::template Raw<S>& raw, u32& taken) {
    if constexpr (uses_columns<S>()) {
      K::beside(Int<S>(), a, t, n, columns_at, slice, vector(j), raw);
      taken |= K::taken_beside(Int<S>(), raw);
    } else if constexpr (K::Holds && S == K::Folds) {
      K::beside(Int<S>(), a, held[j], raw);
    }
  }
  // Where a lane's vectors lie in a slice. By words the constant comes last: addresses are a register and a number.
  static RD Ix vector(int j) { return kWords ? mine() + (Ix)(j * Threads * K::V) : (Ix)(j * Threads + threadIdx.x) * K::V; }
  static RD Ix mine() { return (Ix)threadIdx.x * K::V; }
  RD void vector_at(Ix from, int j, At& t) {
    if constexpr (kWords) K::element_at(a, from + mine(), (Ix)(j * Threads * K::V), t);
    else K::element_at(a, from + vector(j), t);
  }
  // Is there a vector j of a lane, which begins at e? In the warps that in_slice calls whole only the last one may be missing, and a condition a vector
  // would part what the compiler otherwise puts side by side.
  template <bool Whole> static RD bool there(int j, Ix e, Ix to) {
    if (kWholes && Whole) return K::Fills == 2 || j + 1 < Steps || e < to;
    return e < to && (!kWords || e + K::V > 0);
  }
  // `f` with every vector of a slice that is there, or `none` with its place. Whole: none of them is short, and the compiler knows it.
  template <bool Whole, class F, class N> RD void each_vector(At& t, Ix from, Ix to, F f, N none) {
#pragma unroll
    for (int j = 0; j < Steps; ++j) {
      const Ix e = from + vector(j);
      if (there<Whole>(j, e, to)) {
        if constexpr (Whole) __builtin_assume(e >= 0);
        vector_at(from, j, t);
        f(j, Whole ? (int)K::V : count_of(e, columns));
      } else {
        none(j);
      }
    }
  }
  // Only the warps with a row's first vector and its last one meet short ones. K::Fills says of every slice: 2 each lane has all its vectors, 1 all but the
  // last one, 0 it is not known.
  template <class F> RD void in_slice(Ix from, Ix to, F f) {
    const u32 warp = threadIdx.x / 32, last = (u32)(to - 1 - from) / K::V % Threads / 32;
    const bool begins = from < 0 && warp == 0, ends = to == columns && (to - from) % K::V != 0 && warp == last;
    const bool misses = kWords && Steps > 1 && to - from < (Ix)((Steps - 2) * Threads + warp * 32 + 32) * K::V;
    if (!K::Windows || !(begins || ends || misses)) f(Flag<true>());
    else f(Flag<false>());
  }
  template <class F> RD void in_loads(Ix from, Ix to, F f) {
    if constexpr (kWholes) in_slice(from, to, f);
    else f(Flag<false>());
  }
  template <int S> RD void fold(At& t, const Row& row, u32 q, Turn<Slots>& turn) {
    typedef typename K::template Acc<S> Acc;
    Acc acc;
    acc.zero();
    sweep<S>(t, row, turn, [&](Ix from, Ix to, typename K::template Raw<S> (&raw)[Steps], const char* columns_at, u32& taken) {
      in_slice(from, to, [&](auto whole) {
        if constexpr (K::Together) {
          typename K::template Lane<S> x[Steps];
          each_vector<whole.value>(t, from, to, [&](int j, int n) {
            columns_beside<S>(t, n, columns_at, j, raw[j], taken);
            K::take(Int<S>(), a, t, n, raw[j], row, x[j]);
          }, [&](int j) { x[j].none(); });
          acc.template fold<whole.value>(x);
        } else {
          each_vector<whole.value>(t, from, to, [&](int j, int n) {
            columns_beside<S>(t, n, columns_at, j, raw[j], taken);
            K::fold(Int<S>(), a, t, n, raw[j], row, acc);
          }, [](int) {});
        }
      });
    });
    meet<32>(acc);
    const u32 r = q % kResults;
    if constexpr (!K::Copies) __syncwarp();  // with slots, giving them back orders what the lanes read before
    if (lane == 0) {
      acc.put((Acc*)sh.states[r] + threadIdx.x / 32);
      barrier_arrive(sh.folded + r);
    }
  }
  // After fold S: its result, the sweeps that follow it, and the stores.
  template <int S> RD void finish(At& t, Row& row, u32 q, Turn<Slots> turn) {
    typedef typename K::template Acc<S> Acc;
    wait_merged(q);
    Acc acc;
    acc.get((const Acc*)sh.result[q % kResults]);
    K::finish(Int<S>(), a, t, K::V, acc, row);
    if constexpr (S + 1 < K::Folds) {
      Turn<Slots> now = turn;
      fold<S + 1>(t, row, q + 1, K::Kept ? now : early);
      finish<S + 1>(t, row, q + 1, turn);
    } else if constexpr (K::Stores) {
      sweep<K::Folds>(t, row, K::Kept ? turn : early, [&](Ix from, Ix to, typename K::template Raw<K::Folds> (&raw)[Steps], const char* columns_at, u32& taken) {
        in_slice(from, to, [&](auto whole) {
          each_vector<whole.value>(t, from, to, [&](int j, int n) {
            columns_beside<K::Folds>(t, n, columns_at, j, raw[j], taken);
            K::store(a, t, n, raw[j], row);
          }, [](int) {});
        });
      });
    }
  }
  RD void start(u32 number, At& t, Row& row) {
    K::row_at(a, (Ix)number, t);
    K::row(a, t, K::V, row);
  }
  RD void compute() {
    u32 folded = 0, stored = 0;
    bool done = false;
    if constexpr (K::Holds) {
      At t{};
      const Ix begin = part * (Ix)rank;
      load_ahead<K::Folds>(t, begin, end_of(begin), held);
    }
    for (;;) {
      while (!done && folded <= stored + kAhead) {
        const u32 number = row_at(folded);
        if (number == kDone) {
          done = true;
        } else {
          At t{};
          Row row;
          start(number, t, row);
          fold<0>(t, row, folded++ * K::Folds, early);
        }
      }
      if (stored == folded) break;
      At t{};
      Row row;
      start(row_again(stored), t, row);
      finish<0>(t, row, stored * K::Folds, late);
      if (rank == 0 && threadIdx.x == 0) K::row_store(a, t, 1, row);
      if constexpr (K::Kept)
        for (int s = 0; s < Slices; ++s) late.next();
      ++stored;
    }
  }
#undef RD
};

template <class K, int Threads, int Cluster, int Steps, int Slots, int Slices, int Ahead, int ColumnSlots, int Team> D void ring(const typename K::Args& a) {
  typedef Ring<K, Threads, Cluster, Steps, Slots, Slices, Ahead, ColumnSlots, Team> R;
  extern __shared__ __align__(128) char dynamic[];
  __shared__ __align__(16) char shared[sizeof(typename R::Shared)];
  typename R::Shared& sh = *(typename R::Shared*)shared;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Slots; ++i) barrier_init(sh.full + i, 1), barrier_init(sh.empty + i, R::kWarps);
    for (int i = 0; i < ColumnSlots && K::Columns; ++i) barrier_init(sh.columns_full + i, 1), barrier_init(sh.columns_empty + i, R::kWarps);
    for (int i = 0; i < R::kResults; ++i) barrier_init(sh.folded + i, R::kWarps), barrier_init(sh.arrived + i, 1), barrier_init(sh.merged + i, 1);
    for (int i = 0; i < R::kQueue; ++i) barrier_init(sh.queued + i, 1);
    for (u64& word : sh.outbox) word = 0;  // holes of a state travel, too
    barrier_init_fence();
  }
  if constexpr (Cluster > 1) cluster_sync();
  else __syncthreads();
  R ring(a, sh, dynamic);
  const u32 warp = threadIdx.x / 32;
  if (warp == R::kWarps) {
    if (ring.lane == 0) ring.produce();
  } else if (warp == R::kWarps + 1) {
    for (u32 i = 0; ring.row_at(i) != R::kDone; ++i) ring.template publish<0>(i * K::Folds);
  } else if (Cluster * Team > 1 && warp == R::kWarps + 2) {
    if constexpr (Cluster * Team > 1)
      for (u32 i = 0; ring.row_at(i) != R::kDone; ++i) ring.template gather<0>(i * K::Folds);
    if constexpr (Team > 1) leave_boards(K::counters(a), gridDim.x / Team * R::kResults * R::kBoard);
  } else if (warp >= R::kWarps) {
    if constexpr (K::Columns) ring.bring_columns();
  } else {
    ring.compute();
  }
  // The last thing that a peer sends here is that there is no further row: every warp has read it.
}
