// Ring: long rows. Persistent blocks, or clusters of them for each row; rows are handed out by a counter, because multiprocessors do
// not get equal shares of the memory. Or teams (team.cuh), which take rows in turns. Each warp has one role, and mbarriers order everything: there is
// no block barrier in the loop.
//
//   producer    takes rows from the counter, tells the block (and its peers), and copies slices of them into a ring of slots
//   compute     fold a row's slices, give their states to the publisher; later store from the same slots, which are then free
//   publisher   merges the states of the block's warps and sends the result to every block of the cluster, or posts it for the team
//   gatherer    merges what the blocks sent (clusters and teams)
//               the last of the two also calculates what follows from a row's state, once a block, and stores what the warp apart of odd rows folds
//               (kHelps; of a larger team it has as many states to merge, all blocks wait for it, and the warp apart stores)
//   parameters  copies the parameters of the block's columns into slots of their own, where K::Columns of them stand there; those that stay the
//               publisher copies, before its first row
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

// B bytes of elements of E bytes that begin Q elements behind the piece of 16 bytes at p; of single bytes Q words, and `bits` more.
template <int E, int Q, int B> D void fetch_between(Words<B>& r, const char* p, u32 bits) {
  if constexpr (B % 16) {
    fetch<E, kPlain>(r, p + (E == 1 ? Q * 4 + bits / 8 : Q * E), 0);
  } else {
    constexpr bool kBetween = Q > 0 || E == 1;
    constexpr int kWord = E == 2 ? Q / 2 : Q;
    constexpr bool kHalf = E == 2 && Q % 2;
    Words<16> low, high;
    clear(high);
#pragma unroll
    for (int k = 0; k < B / 16; ++k) {
      if (k > 0 && kBetween) low = high;
      else FETCH(low, 0, p + k * 16);
      if (kBetween) FETCH(high, 0, p + (k + 1) * 16);
      u32 w[8];
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = low.w[i], w[i + 4] = high.w[i];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 here = w[i + kWord], next = w[i + kWord + 1];
        r.w[k * 4 + i] = E == 1 ? __funnelshift_r(here, next, bits) : kHalf ? here >> 16 | next << 16 : here;  // plain shifts: what unpacks it takes the halves as they lie
      }
    }
  }
}

template <class K, int Threads, int Cluster, int Steps, int Slots, int Slices, int Ahead, int ColumnSlots, int Team> struct Ring {
  typedef typename K::Ix Ix;
  typedef typename K::Args Args;
  typedef typename K::At At;
  typedef typename K::Row Row;
  // States in flight: more than rows between the fastest warp and the slowest, twice the rows ahead and two. The queue holds more rows than slots do.
  enum { kWarps = Threads / 32, kResults = Ahead > 3 ? 16 : 8, kQueue = 32, kAhead = K::Kept && K::Folds == 1 ? Ahead : 0,
         Last = K::Stores ? K::Folds : K::Folds - 1, kStay = ColumnSlots >= Slices,
         kBoard = words_of_board((int)K::AccBytes / 4, Team), kApart = !K::Full, kMain = Threads - (kApart ? 32 : 0),
         kBlocks = Team > 1 ? Team : Cluster, kStep = 32 * (int)K::V,
         kHelps = kApart && Team <= 33 && K::Copies && K::Kept && K::Folds == 1 && K::Stores && (kStay || !K::Columns) };
  enum Role { kAny, kMainOnly, kApartOnly };  // which of the two parts of a slice there is code for
  enum : u32 { kDone = 0xffffffffu };
  struct Shared {
    u64 full[Slots], empty[Slots], columns_full[ColumnSlots], columns_empty[ColumnSlots], folded[kResults], arrived[kResults], merged[kResults], queued[kQueue];
    __align__(16) char states[kResults][kWarps][K::AccBytes];
    __align__(16) char inbox[kResults][Cluster][K::AccBytes];
    __align__(16) Row rows[kResults];
    __align__(16) u64 outbox[K::AccBytes / 8];
    u32 queue[kQueue];
  };

  const Args& a;
  Shared& sh;
  char* slots;
  const u64 policy;
  const Ix rows, columns;
  const u32 rank, lane;   // rank: among the blocks of a row
  Ix first, size, slice;  // the block's elements of a row, and those for a slot: whole vectors, whole 16-byte pieces of every operand
  Turn<Slots> early, late;  // slots of the first sweep, and of those that come back to them
  Turn<ColumnSlots> beside; // slots of parameters that come again
  typename K::template Raw<K::Folds> held[K::Holds ? Steps : 1];  // parameters of the block's columns in registers

#define RD __device__ __forceinline__
  RD Ring(const Args& args, Shared& shared, char* dynamic)
      : a(args), sh(shared), slots(dynamic), policy(K::policy(args)), rows(K::rows(args)), columns(K::columns(args)),
        rank(Team > 1 ? blockIdx.x % Team : Cluster > 1 ? cluster_rank() : 0), lane(threadIdx.x % 32), early{0, 0}, late{0, 0}, beside{0, 0} {
    const Ix span = columns + (K::Window - 1);
    const Ix part = whole(span, kBlocks);
    slice = whole(part, Slices);
    // Odd rows: as even as may be, so that no block has a step more than the others.
    first = kApart ? begin_of_block(rank) : part * (Ix)rank;
    size = kApart ? begin_of_block(rank + 1) - first : part;
  }
  static RD Ix whole(Ix n, Ix by) { return ((n + by - 1) / by + K::Granule - 1) / K::Granule * K::Granule; }
  RD Ix begin_of_block(u32 rank) {
    const Ix granules = (columns + (K::Window - 1) + (K::Granule - 1)) / K::Granule;
    return (Ix)(((u64)granules * rank + (kBlocks - 1)) / kBlocks) * K::Granule;
  }
  RD char* slot_at(u32 slot) { return slots + slot * (u32)(slice * K::RowBytes + K::LeadBytes); }
  RD char* columns_at(u32 slot) { return slot_at(Slots) + slot * (u32)(slice * K::ColumnBytes + K::ColumnLeadBytes); }

  // Row number i of this cluster or team.
  RD u32 row_at(u32 i) {
    if constexpr (Team > 1) return row_of_turn(i);
    barrier_wait(sh.queued + i % kQueue, i / kQueue & 1);
    return sh.queue[i % kQueue];
  }
  // The same, known already.
  RD u32 row_again(u32 i) { return Team > 1 ? row_of_turn(i) : sh.queue[i % kQueue]; }
  RD u32 row_of_turn(u32 i) {
    const u64 row = blockIdx.x / Team + (u64)i * (gridDim.x / Team);
    return row < (u64)rows ? (u32)row : kDone;
  }
  RD Ix begin_of(const At& t) { return first - K::skew(a, t); }
  RD Ix end_of(Ix begin) { return begin + size < columns ? begin + size : columns; }

  // --- producer ---------------------------------------------------------------------------------------------------------------
  RD void produce() {
    u32* counters = K::counters(a);
    u32 next = Team == 1 && rank == 0 ? atomicAdd(counters, 1u) : 0;
    const u64 again = K::Kept ? policy : K::policy_of_last(a);
    for (u32 i = 0;; ++i) {
      // A row is taken as late as possible: when there is room for its first slice, or none but two are under way.
      if constexpr (K::Copies) barrier_wait(sh.empty + early.slot, early.parity ^ 1);
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
            if (sweep + s) barrier_wait(sh.empty + early.slot, early.parity ^ 1);
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
    const Ix margin = K::Windows ? K::Granule : 0, from = first + s * slice - margin, end = from + slice + 2 * margin;
    K::issue_columns(a, from, from < 0 ? 0 : from, end < columns ? end : columns, slice, columns_at(slot), sh.columns_full + slot, policy);
  }
  RD void bring_columns() {
    if constexpr (kStay) {
      for (int s = 0; s < Slices; ++s) issue_columns(s, s);
    } else {
      for (u32 i = 0; row_at(i) != kDone; ++i)
        for (int s = 0; s < Slices; ++s) {
          barrier_wait(sh.columns_empty + beside.slot, beside.parity ^ 1);
          issue_columns(s, beside.slot);
          beside.next();
        }
    }
  }

  // --- publisher and gatherer: state q = row * Folds + sweep ----------------------------------------------------------------------
  RD void wait_merged(u32 q) { barrier_wait(sh.merged + q % kResults, q / kResults & 1); }
  // What follows from state q, for the compute warps: by one lane.
  template <int S, class Acc> RD void conclude(u32 q, const Acc& acc) {
    At t{};
    Row row{};
    const u32 number = row_again(q / K::Folds);
    if constexpr (S == 0) {
      start(number, t, row);
    } else {
      K::row_at(a, (Ix)number, t);
      row = sh.rows[(q - 1) % kResults];
    }
    K::finish(Int<S>(), a, t, K::V, acc, row);
    sh.rows[q % kResults] = row;
    barrier_arrive(sh.merged + q % kResults);
  }
  // The states of N warps or blocks, merged by the lanes of a warp.
  template <int N, class Acc> RD void meet_all(const Acc* states, Acc& acc) {
    if constexpr ((N & (N - 1)) == 0) {
      acc.get(states + lane % N);
      meet<N, false>(acc);
    } else {
      acc.zero();
      if (lane < N) acc.get(states + lane);
      meet<32, false>(acc);
    }
  }
  template <int S> RD void publish(u32 q) {
    typedef typename K::template Acc<S> Acc;
    const u32 r = q % kResults;
    barrier_wait(sh.folded + r, q / kResults & 1);
    Acc acc;
    meet_all<kWarps>((const Acc*)sh.states[r], acc);
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
      conclude<S>(q, acc);
    }
    __syncwarp();
    if constexpr (kHelps && kBlocks == 1) store_apart(q);
    if constexpr (S + 1 < K::Folds) publish<S + 1>(q + 1);
  }
  template <int S> RD void gather(u32 q) {
    typedef typename K::template Acc<S> Acc;
    const u32 r = q % kResults;
    Acc acc;
    if constexpr (Team > 1) {
      barrier_wait(sh.arrived + r, q / kResults & 1);
      collect_states<Team>(board_at(q), q + 1, acc);
      meet<32, false>(acc);
    } else {
      if (lane == 0) barrier_arrive(sh.arrived + r, (u32)(Cluster * sizeof(Acc)));
      barrier_wait(sh.arrived + r, q / kResults & 1);
      meet_all<Cluster>((const Acc*)sh.inbox[r], acc);
      __syncwarp();
    }
    if (lane == 0) conclude<S>(q, acc);
    if constexpr (kHelps) {
      __syncwarp();
      store_apart(q);
    }
    if constexpr (S + 1 < K::Folds) gather<S + 1>(q + 1);
  }
  // Row i's vectors that the warp apart folded, by the warp that has concluded the row: it has time, and no row is late for conditions on its elements.
  RD void store_apart(u32 i) {
    At t{};
    K::row_at(a, (Ix)row_again(i), t);
    store<kApartOnly>(t, sh.rows[i % kResults], late);
  }

  // Of a team: where its blocks post state q.
  RD u64* board_at(u32 q) { return boards_at(K::counters(a)) + (blockIdx.x / Team * kResults + q % kResults) * kBoard; }

  // Merges over `Lanes` neighbouring lanes, `Equal`: that have as many elements.
  template <int Lanes, bool Equal, class A> static RD void meet(A& acc) {
    if constexpr (K::Together) acc.template meet<Lanes, Equal>();
    else butterfly<Lanes>(acc);
  }

  // --- compute ------------------------------------------------------------------------------------------------------------------
  // Sweep S over the block's part of a row: its slices from `turn` on, `each` with a lane's vectors of one, or `one` with the vector that a lane of the warp
  // apart has. The last sweep that reads a slot gives it back.
  template <int S, int Who, class One, class Each> RD void sweep(At& t, const Row& row, Turn<Slots>& turn, One one, Each each) {
    typedef typename K::template Raw<S> Raw;
    const bool apart = Who == kApartOnly || (Who == kAny && is_apart());
    const Ix begin = begin_of(t), end = end_of(begin);
    Raw next[Steps];
    if constexpr (loads_ahead<S>()) load_ahead<S>(t, begin, end, next);
#pragma unroll 1
    for (int s = 0; s < Slices; ++s) {
      const Ix from = begin + s * slice, to = from + slice < end ? from + slice : end;
      Raw raw[Steps];
      if constexpr (loads_ahead<S>()) {
#pragma unroll
        for (int j = 0; j < Steps; ++j) raw[j] = next[j];
        if (s + 1 < Slices) load_ahead<S>(t, from + slice, end, next);
      }
      if constexpr (K::Copies && (S == 0 || !K::Kept || Who == kApartOnly)) barrier_wait(sh.full + turn.slot, turn.parity);
      const Ix lead = begin_of_main(from) - from;
      const u32 columns_slot = kStay ? s : beside.slot;
      const char* columns_here = nullptr;
      auto wait_for_columns = [&] {
        barrier_wait(sh.columns_full + columns_slot, kStay ? 0 : beside.parity);
        columns_here = columns_at(columns_slot);
      };
      if constexpr (uses_columns<S>() && kApart) wait_for_columns();
      const char* slot = slot_at(turn.slot);
      u32 taken = 0, columns_taken = 0;
      auto load = [&](Ix at, int n, Raw& raw) {
        if constexpr (K::Copies) {
          K::load(Int<S>(), a, t, n, slot, slice, at, row, raw);
          taken |= K::taken(Int<S>(), raw);
        } else {
          K::load(Int<S>(), a, t, n, policy, row, raw);
        }
      };
      // The parameters beside a vector, just before they are used: until then they wait in shared memory, or in registers as they lie in memory.
      auto with_columns = [&](auto phase, int j, Ix at, int n, Raw& raw) {
        if constexpr (uses_columns<S>()) {
          K::beside(Int<S>(), phase, a, t, n, columns_here, slice, at, raw);
          columns_taken |= K::taken_beside(Int<S>(), raw);
        } else if constexpr (K::Holds && S == K::Folds) {
          K::beside(Int<S>(), a, held[j], raw);
        }
      };
      if (apart) {
        vectors_apart(t, from, to, [&](Ix at, int n) {
          Raw raw;
          if constexpr (loads_ahead<S>()) K::ahead(Int<S>(), a, t, n, raw);
          load(at, n, raw);
          with_columns(Int<-1>(), 0, at, n, raw);
          one(n, raw);
        });
      } else {
        whole_vectors(t, from, to, [&](int j) { load(lead + vector(j), K::V, raw[j]); }, [](int) {});
      }
      if constexpr (K::Copies) {
        if constexpr (S == Last || !K::Kept) {
          __syncwarp();
          // What was loaded must be in registers before the slot is given back: ptxas lets the arrival pass loads that still wait behind others (seen in
          // first calls, whose parameters miss the TLB: a slot was overwritten before it was read). So the arrival depends on the words.
          if (lane == 0) barrier_arrive(sh.empty + turn.slot + (taken & K::zero(a)));
        }
        turn.next();
      }
      if constexpr (uses_columns<S>() && !kApart) wait_for_columns();
      if (!apart) in_phase<S>(t, [&](auto phase) { each(from, to, raw, [&](int j, bool there = true) { with_columns(phase, j, there ? lead + vector(j) : 0, K::V, raw[j]); }); });
      if constexpr (uses_columns<S>() && !kStay) {
        __syncwarp();
        if (lane == 0) barrier_arrive(sh.columns_empty + columns_slot + (columns_taken & K::zero(a)));
        beside.next();
      }
    }
  }
  // Parameters that lanes load themselves are asked for a slice ahead of their use, or once, where a row has one slice and registers hold them.
  template <int S> static RD constexpr bool loads_ahead() { return K::LoadsAhead && !K::Holds && S == K::Folds; }
  template <int S> RD void load_ahead(At& t, Ix from, Ix end, typename K::template Raw<S> (&raw)[Steps]) {
    const Ix to = from + slice < end ? from + slice : end;
    if (!is_apart()) whole_vectors(t, from, to, [&](int j) { K::ahead(Int<S>(), a, t, K::V, raw[j]); }, [](int) {});
  }
  template <int S> static RD constexpr bool uses_columns() { return K::ColumnsOf >> S & 1; }
  // Rows that begin anywhere: all of a row's vectors meet their parameters at the same place between two pieces (K::phase), for each of which there is code.
  template <int S, class F> RD void in_phase(const At& t, F f) {
    if constexpr (uses_columns<S>() && K::Phases > 0) with_phase<0>(K::phase(a, t), f);
    else f(Int<0>());
  }
  template <int Q, class F> RD void with_phase(u32 phase, F f) {
    if constexpr (Q + 1 < K::Phases) {
      if (phase != Q) return with_phase<Q + 1>(phase, f);
    }
    f(Int<Q>());
  }
  // Rows that begin anywhere begin and end inside of vectors, whose elements have conditions. A warp apart takes these two, the vectors of a row before its
  // first window is over, and those beyond whole steps of the other warps. So none of these has a condition an element or a lane; all lanes of one have as
  // many vectors, and none is late because it has conditions and as much to do as the others: a row waits for its slowest warp.
  static RD bool is_apart() { return kApart && threadIdx.x >= (u32)kMain; }
  RD Ix begin_of_main(Ix from) { return kApart && from < 0 ? from + K::Window : from; }
  RD Ix end_of_main(Ix begin, Ix to) {
    if (!kApart) return to;
    const u32 steps = to > begin ? (u32)(to - begin) / kStep : 0, most = Steps * kMain / 32;
    return begin + (Ix)((steps < most ? steps : most) * kStep);
  }
  template <class F> RD void vectors_apart(At& t, Ix from, Ix to, F f) {
    // Of more blocks none has both ends of a row and more than 30 whole vectors here: a part is whole windows, and so is what lies before it.
    constexpr bool kOnce = kBlocks > 1 && K::Window <= 32 * K::V;
    constexpr u32 kWhole = kOnce ? 31 : 30;
    const Ix begin = begin_of_main(from), end = end_of_main(begin, to);
    const u32 before = from < 0 ? (u32)begin / K::V : 0, all = before + (to > end ? (u32)(to - end) / K::V : 0);
    const u32 head = from < 0 ? (u32)begin % K::V : 0, tail = to == columns ? (u32)(columns - from) % K::V : 0;
    const bool first = head > 0 && lane == 31, last = tail > 0 && (lane == 31 || head > 0);  // the last lane's or, of two ends, the last but one's
    const bool whole = lane < kWhole && !(lane == 30 && last);
    const Ix part = first ? (Ix)head - K::V : columns - (Ix)tail;
    for (u32 i = lane;; i += kWhole) {
      const Ix e = whole ? (i < before ? begin : end) + ((Ix)i - (Ix)before) * K::V : part;
      const bool there = whole ? (i < all) & (e + K::V <= columns) : first | (last & (e >= 0));
      if (there & (to > from)) {
        K::element_at(a, e, t);
        f(e - from, (int)(columns - e < K::V ? columns - e : K::V));
      }
      if (kOnce || !whole || i + kWhole >= all) break;
    }
  }
  // Where the others' vectors lie in a slice. In windows the constant comes last: addresses are a register and a number.
  static RD Ix mine() { return (Ix)threadIdx.x * K::V; }
  static RD Ix vector(int j) { return K::Windows ? mine() + (Ix)(j * kMain * K::V) : (Ix)(j * Threads + threadIdx.x) * K::V; }
  RD void vector_at(Ix from, int j, At& t) {
    if constexpr (K::Windows) K::element_at(a, from + mine(), (Ix)(j * kMain * K::V), t);
    else K::element_at(a, from + vector(j), t);
  }
  // Has a slice the first `count` vectors of all lanes of this warp? K::Fills says of every slice: 2 each lane has all its vectors, 1 all but the last one,
  // 0 it is not known; of odd rows, in windows, the warps ask (K::Asks).
  RD bool has(int count, Ix from, Ix to) {
    if (!K::Asks) return K::Fills == 2 && count == Steps;
    const Ix begin = begin_of_main(from);
    return (kApart || begin + (Ix)(threadIdx.x / 32 * 32) * K::V >= 0) && begin + (Ix)((threadIdx.x | 31) + (count - 1) * kMain) * K::V < end_of_main(begin, to);
  }
  static RD bool is_there(Ix e, int j, Ix end) { return e < end && (!K::Windows || kApart || j > 0 || e >= 0); }
  // `f` with every whole vector of a slice that is there, or `none` with its number; or with the first `All`, which are there. A condition a vector would
  // part what the compiler otherwise puts side by side.
  template <int All = 0, class F, class N> RD void whole_vectors(At& t, Ix from, Ix to, F f, N none) {
    const Ix begin = begin_of_main(from), end = end_of_main(begin, to);
#pragma unroll
    for (int j = 0; j < (All ? All : Steps); ++j) {
      if (All || K::Fills == 2 || (K::Fills && j + 1 < Steps) || is_there(begin + vector(j), j, end)) {
        vector_at(begin, j, t);
        if constexpr (K::Windows) __builtin_assume(t.e >= 0);
        f(j);
      } else {
        none(j);
      }
    }
  }
  template <int S, int Who> RD void fold(At& t, const Row& row, u32 q, Turn<Slots>& turn) {
    typedef typename K::template Acc<S> Acc;
    typedef typename K::template Raw<S> Raw;
    Acc acc;
    acc.zero();
    bool equal = false;
    if constexpr (K::Together) {
      typedef typename K::template Lane<S> Lane;
      sweep<S, Who>(t, row, turn, [&](int n, const Raw& raw) {
        Lane x[1];
        K::take(Int<S>(), a, t, n, raw, row, x[0]);
        acc.template fold<0, false>(x);
      }, [&](Ix from, Ix to, const Raw (&raw)[Steps], auto with_columns) {
        auto all = [&](auto count) {
          Lane x[decltype(count)::value];
          whole_vectors<decltype(count)::value>(t, from, to, [&](int j) { with_columns(j), K::take(Int<S>(), a, t, K::V, raw[j], row, x[j]); }, [](int) {});
          acc.template fold<2, Slices == 1>(x);
        };
        equal = kApart || (K::Fills == 2 && Slices == 1);
        if (has(Steps, from, to)) {
          all(Int<Steps>());
        } else if (kApart && K::Asks && Steps > 1 && has(Steps - 1, from, to)) {
          all(Int<(Steps > 1 ? Steps - 1 : 1)>());
        } else {
          Lane x[Steps];
          whole_vectors(t, from, to, [&](int j) { with_columns(j), K::take(Int<S>(), a, t, K::V, raw[j], row, x[j]); }, [&](int j) { x[j].none(); });
          acc.template fold<1, Slices == 1>(x);
        }
      });
    } else {
      sweep<S, Who>(t, row, turn, [&](int n, const Raw& raw) { K::fold(Int<S>(), a, t, n, raw, row, acc); },
               [&](Ix from, Ix to, const Raw (&raw)[Steps], auto with_columns) {
        whole_vectors(t, from, to, [&](int j) { with_columns(j), K::fold(Int<S>(), a, t, K::V, raw[j], row, acc); }, [](int) {});
      });
      acc.settle();
    }
    if (equal) meet<32, true>(acc);
    else meet<32, false>(acc);
    const u32 r = q % kResults;
    if constexpr (!K::Copies || Who == kApartOnly) __syncwarp();  // who gives slots back orders by it what the lanes read before
    if (lane == 0) {
      acc.put((Acc*)sh.states[r] + threadIdx.x / 32);
      barrier_arrive(sh.folded + r);
    }
  }
  // After fold S: what follows from it, later sweeps, and the stores.
  template <int S> RD void finish(At& t, Row& row, u32 q, Turn<Slots> turn) {
    wait_merged(q);
    row = sh.rows[q % kResults];
    if constexpr (S + 1 < K::Folds) {
      Turn<Slots> now = turn;
      fold<S + 1, kAny>(t, row, q + 1, K::Kept ? now : early);
      finish<S + 1>(t, row, q + 1, turn);
    } else if constexpr (K::Stores) {
      store<kHelps ? kMainOnly : kAny>(t, row, K::Kept ? turn : early);
    }
  }
  template <int Who> RD void store(At& t, const Row& row, Turn<Slots>& turn) {
    typedef typename K::template Raw<K::Folds> Raw;
    auto one = [&](int n, const Raw& raw) { K::store(a, t, n, raw, row); };
    sweep<K::Folds, Who>(t, row, turn, one, [&](Ix from, Ix to, const Raw (&raw)[Steps], auto with_columns) {
      if constexpr (K::StoresWhere) {
        // All of a lane's vectors are calculated, whatever is in the slot, and those that are there are stored.
        const Ix begin = begin_of_main(from), end = end_of_main(begin, to);
#pragma unroll
        for (int j = 0; j < Steps; ++j) {
          const bool there = is_there(begin + vector(j), j, end);
          vector_at(begin, j, t);
#ifdef FUSEC_SIMT
          if (!there) continue;  // it holds against a kernel that it reads what nobody wrote
#endif
          with_columns(j, there);
          K::store_where(a, t, there, raw[j], row);
        }
      } else {
        whole_vectors(t, from, to, [&](int j) { with_columns(j), one(K::V, raw[j]); }, [](int) {});
      }
    });
  }
  RD void start(u32 number, At& t, Row& row) {
    K::row_at(a, (Ix)number, t);
    K::row(a, t, K::V, row);
  }
  // The warp apart, where another stores: as many rows ahead as the others.
  RD void fold_apart() {
    for (u32 i = 0;; ++i) {
      const u32 number = row_at(i);
      if (number == kDone) return;
      if (i > kAhead) wait_merged(i - 1 - kAhead);
      At t{};
      Row row;
      start(number, t, row);
      fold<0, kApartOnly>(t, row, i, early);
    }
  }
  RD void compute() {
    u32 folded = 0, stored = 0;
    bool done = false;
    if constexpr (kHelps)
      if (is_apart()) return fold_apart();
    if constexpr (K::Holds) {
      At t{};
      load_ahead<K::Folds>(t, first, end_of(first), held);
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
          fold<0, kHelps ? kMainOnly : kAny>(t, row, folded++ * K::Folds, early);
        }
      }
      if (stored == folded) break;
      At t{};
      Row row;
      K::row_at(a, (Ix)row_again(stored), t);
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
    if constexpr (K::Columns && R::kStay) ring.bring_columns();
    for (u32 i = 0; ring.row_at(i) != R::kDone; ++i) ring.template publish<0>(i * K::Folds);
  } else if (Cluster * Team > 1 && warp == R::kWarps + 2) {
    if constexpr (Cluster * Team > 1)
      for (u32 i = 0; ring.row_at(i) != R::kDone; ++i) ring.template gather<0>(i * K::Folds);
    if constexpr (Team > 1) leave_boards(K::counters(a), gridDim.x / Team * R::kResults * R::kBoard);
  } else if (warp >= R::kWarps) {
    if constexpr (K::Columns && !R::kStay) ring.bring_columns();
  } else {
    ring.compute();
  }
  // The last thing that a peer sends here is that there is no further row: every warp has read it.
}
