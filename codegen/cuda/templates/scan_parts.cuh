// Long rows of a scan in parts of one chunk, a block each: read once, written once, however few rows there are. Every order is fixed, which the
// decoupled look-back of Merrill & Garland (2016) is not: a part folds the totals of the earlier ones of its group in a tree, and behind that
// group's front, which the last part of the group before has left:
//
//   parts    0 … 255 | 256 … 511 | …      front of a group = front of the one before, and its 256 totals
//
// Who leaves a front has everything else ready when it comes: the fronts are the one chain of a row, a hop of memory each.
//
// A block takes the next number when it begins, so whom it waits for has begun. Flags are zero again when the last block ends.
D void see(const u32* flag) {
  while (!*(const volatile u32*)flag) __nanosleep(20);
}
D void wait_for(const u32* flag) {
  see(flag);
  __threadfence();
}
// The fold of the parts up to Each from `first` on, in order, as far as they lie below `end`.
template <int Each, class A> D void fold_parts(const u32* flags, const A* totals, u32 stride, u32 first, u32 end, A& sum) {
  A part[Each];
#pragma unroll
  for (int k = 0; k < Each; ++k)
    if (first + k < end) see(flags + (first + k));
  __threadfence();
#pragma unroll
  for (int k = 0; k < Each; ++k) {
    part[k].zero();
    if (first + k < end) part[k].fresh(totals + (u64)(first + k) * stride);
  }
  sum.zero();
#pragma unroll
  for (int k = 0; k < Each; ++k) sum.merge(part[k]);
}
D void raise_flag(u32* flag) {
  __threadfence();
  *(volatile u32*)flag = 1;
}

// The number of a block, in the order in which they begin. By all threads.
D u32 take_number(u32* counter) {
  __shared__ u32 number;
  if (threadIdx.x == 0) number = atomicAdd(counter, 1u);
  __syncthreads();
  return number;
}
// The last block puts the counters back: numbers taken, blocks that have ended, flags. (Its barriers have passed since a thread waited.)
template <int Threads> D void end_part(u32* counters, u32 blocks, u32 flags) {
  __shared__ u32 last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(counters + 1, 1u) == blocks - 1;
  }
  __syncthreads();
  if (!last) return;
  for (u32 k = threadIdx.x; k < flags + 2; k += Threads) atomicExch(counters + k, 0u);
}

template <class K, int Steps, int Threads> D void scan_parts(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  // A group of 512 parts is all that runs at a time, and its blocks wait beside each other (64 M floats 0.34 of the copy rate, of 256 0.45).
  constexpr int kWarps = Threads / 32, kEach = 1, kGroup = Threads * kEach;
  __shared__ __align__(16) char scratch[(2 * kWarps + 1) * K::AccBytes];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  constexpr Ix kChunk = (Ix)Threads * Steps * K::V;
  const u32 parts = (u32)((scan_width<K>(a) + kChunk - 1) / kChunk), groups = (parts + kGroup - 1) / kGroup, blocks = (u32)rows * parts;
  u32 *const counters = K::counters(a), *const flags = counters + 2, *const front_flags = flags + blocks;
  Acc *const totals = (Acc*)K::states(a), *const fronts = totals + blocks;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  const u32 own = take_number(counters), r = own / parts, p = own % parts, group = p / kGroup, place = p % kGroup;
  typename K::At t{};
  typename K::Row row;
  K::row_at(a, (Ix)r, t);
  K::row(a, t, K::V, row);
  const Ix first = (Ix)(K::Reverse ? parts - 1 - p : p) * kChunk + (Ix)(warp * Steps * 32 + lane) * K::V - scan_skew<K>(a, t);
  RowChunk<K, 32, Steps> chunk;
  chunk.read(a, t, row, first, columns, policy);
  Acc front, all;
  Acc* at = (Acc*)scratch;
  if (lane == 0) chunk.run.put(at + warp);
  __syncthreads();
  scan_parties<kWarps, 1, K::Reverse>(at, warp, front, all);
  if (threadIdx.x == 0) {
    all.put(totals + own);
    raise_flag(flags + own);
  }

  // The earlier parts of the group, kEach a thread, in the order of the scan.
  const u32 mine = (K::Reverse ? Threads - 1 - threadIdx.x : threadIdx.x) * kEach, before = r * groups + group;
  Acc one, sum, lower;
  fold_parts<kEach>(flags, totals, 1, own - place + mine, own, one);
  scan_warp<32, K::Reverse>(one, sum);
  at += kWarps;
  if (lane == 0) sum.put(at + warp);
  __syncthreads();
  scan_parties<kWarps, 1, K::Reverse>(at, warp, one, sum);
  at += kWarps;
  lower.zero();
  if (threadIdx.x == 0 && group) {
    wait_for(front_flags + before);
    lower.fresh(fronts + before);
    lower.put(at);
  }
  if (threadIdx.x == 0 && place == kGroup - 1 && p + 1 < parts) {
    Acc next = lower;
    next.merge(sum);
    next.merge(all);
    next.put(fronts + (before + 1));
    raise_flag(front_flags + (before + 1));
  }
  if (group) {
    __syncthreads();
    lower.get(at);
  }
  lower.merge(sum);
  lower.merge(front);
  chunk.write(a, t, row, first, columns, lower);
  if constexpr (K::RowStores)
    if (p == 0 && threadIdx.x == 0) K::row_store(a, t, K::V, row);
  end_part<Threads>(counters, blocks, blocks + (u32)rows * groups);
}

// Columns: a group is what the Y threads of a column fold, kEach parts each.
template <class K, int X, int Steps, int Threads> D void scan_column_parts(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  constexpr int Y = Threads / X, kEach = 4, kGroup = Y * kEach;
  __shared__ __align__(16) char scratch[(2 * Threads + X) * K::AccBytes];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  constexpr Ix kChunk = (Ix)Y * Steps;
  const u32 strips = (u32)((rows + X * K::V - 1) / (X * K::V)), parts = (u32)((columns + kChunk - 1) / kChunk), groups = (parts + kGroup - 1) / kGroup;
  const u32 blocks = strips * parts;
  u32 *const counters = K::counters(a), *const flags = counters + 2, *const front_flags = flags + blocks;
  const int lane = threadIdx.x % X, y = threadIdx.x / X;
  Acc *const totals = (Acc*)K::states(a) + lane, *const fronts = totals + (u64)blocks * X;

  const u32 own = take_number(counters), strip = own / parts, p = own % parts, group = p / kGroup, place = p % kGroup;
  const Ix r = (Ix)strip * (X * K::V) + lane * K::V, there = rows - r;
  const int n = there >= K::V ? (int)K::V : there > 0 ? (int)there : 0;
  typename K::At t{};
  typename K::Row row;
  K::row_at(a, n ? r : 0, t);
  K::row(a, t, n, row);
  const Ix first = (Ix)(K::Reverse ? parts - 1 - p : p) * kChunk + (Ix)(y * Steps);
  ColumnChunk<K, Steps> chunk;
  chunk.read(a, t, n, row, first, columns, policy);
  Acc front, all;
  Acc* at = (Acc*)scratch + lane;
  chunk.run.put(at + y * X);
  __syncthreads();
  scan_parties<Y, X, K::Reverse>(at, y, front, all);
  if (y == 0) all.put(totals + (u64)own * X);
  __syncthreads();
  if (threadIdx.x == 0) raise_flag(flags + own);

  const u32 mine = (K::Reverse ? Y - 1 - y : y) * kEach, before = strip * groups + group;
  Acc one, sum, lower;
  fold_parts<kEach>(flags, totals, X, own - place + mine, own, one);
  at += Threads;
  one.put(at + y * X);
  __syncthreads();
  scan_parties<Y, X, K::Reverse>(at, y, one, sum);
  at += Threads;
  lower.zero();
  if (y == 0 && group) {
    wait_for(front_flags + before);
    lower.fresh(fronts + (u64)before * X);
    lower.put(at);
  }
  if (place == kGroup - 1 && p + 1 < parts) {
    Acc next = lower;
    next.merge(sum);
    next.merge(all);
    if (y == 0) next.put(fronts + (u64)(before + 1) * X);
    __syncthreads();
    if (threadIdx.x == 0) raise_flag(front_flags + (before + 1));
  }
  if (group) {
    __syncthreads();
    lower.get(at);
  }
  lower.merge(sum);
  lower.merge(front);
  chunk.write(a, t, n, row, first, columns, lower);
  if constexpr (K::RowStores)
    if (p == 0 && y == 0 && n > 0) K::row_store(a, t, n, row);
  end_part<Threads>(counters, blocks, blocks + strips * groups);
}
