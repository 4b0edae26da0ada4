// Teams: blocks that hold a row together and are no cluster, because a cluster has at most 16 blocks. Each is alone on a multiprocessor, and all run at
// once (a cooperative launch). They meet in global memory: every block posts its state on a board, reads those of all and merges them in the order of
// their ranks.
//
// A state travels as words of 32 bits, each in one store of 64 beside the number of its meeting: whoever reads that number has the word, and nothing
// waits for a fence, which would wait for the stores of rows. A team has eight boards, which its meetings take in turns. With three rows ahead a
// block posts meeting q + 8 when it has read q + 4, so that every block has posted q + 4, and had read q before that. With up to seven rows ahead there
// are sixteen. Words are zero before the launch; the last block to leave puts them back.
D u64 look(const u64* at) {
#ifdef FUSEC_SIMT
  return simt_ld_relaxed(at);
#else
  u64 out;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(out) : "l"(at) : "memory");
  return out;
#endif
}
D void post(u64* at, u64 word) {
#ifdef FUSEC_SIMT
  simt_st_relaxed(at, word);
#else
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
#endif
}

// A board: word w of rank r at [w * Team + r]. The boards of all teams begin behind the counter of those who have left.
D constexpr u32 words_of_board(u32 words, u32 team) { return (words * team + 15) / 16 * 16; }
D u64* boards_at(u32* counters) { return (u64*)(((u64)(counters + 1) + 127) / 128 * 128); }

// By a warp, each lane the words of its number.
template <int Team, class A> D void post_state(u64* board, const void* state, u32 rank, u32 number) {
  for (int w = threadIdx.x % 32; w < A::Words; w += 32) post(board + (w * Team + rank), (u64)number << 32 | ((const u32*)state)[w]);
}
// The states of all blocks: a lane merges those 32 apart, the lanes have yet to meet. By a warp.
template <int Team, class A> D void collect_states(const u64* board, u32 number, A& all) {
  constexpr int kEach = (Team + 31) / 32;
  const u32 lane = threadIdx.x % 32;
  __align__(8) u32 words[kEach][sizeof(A) / 4];
#ifdef FUSEC_SIMT
  for (auto& of : words)  // what nobody wrote is NaN, or a mistake here would hang on what the stack held before
    for (u32& w : of) w = ~0u;
#endif
  u32 missing = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (lane + 32 * k < Team) missing |= 1u << k;
  const u32 mine = missing;
  while (missing) {
    u64 seen[kEach][A::Words];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
      for (int w = 0; w < A::Words; ++w) seen[k][w] = missing >> k & 1 ? look(board + (w * Team + lane + 32 * k)) : 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      bool there = missing >> k & 1;
#pragma unroll
      for (int w = 0; w < A::Words; ++w) there &= (u32)(seen[k][w] >> 32) == number;
      if (!there) continue;
      missing &= ~(1u << k);
#pragma unroll
      for (int w = 0; w < A::Words; ++w) words[k][w] = (u32)seen[k][w];
    }
  }
  all.zero();
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (mine >> k & 1) {
      A one;
      one.get((const A*)words[k]);
      all.merge(one);
    }
}
// A block has read whatever it will read; by the warp that read it, whose lanes have met since. The last one clears the boards, and the counter.
D void leave_boards(u32* counters, u32 words) {
  u32 last = 0;
  if (threadIdx.x % 32 == 0) {
    __threadfence();
    last = atomicAdd(counters, 1u) == gridDim.x - 1;
  }
  if (!__shfl_sync(0xffffffffu, last, 0)) return;
  for (u32 i = threadIdx.x % 32; i < words; i += 32) post(boards_at(counters) + i, 0);
  if (threadIdx.x % 32 == 0) atomicExch(counters, 0u);
}
