// Scans: one pass that loads what inputs and stores need, takes the inputs, runs over them (templates/scan.cuh), and stores.
//
//   load: loads only;  take: a lane's inputs, identities where there is no element;  store: from the loads and the running values

#include "codegen/cuda/emitter.h"

namespace fusec::cuda {

void Emitter::scan() {
  std::vector<Val> both = targets(0);
  for (Val v : targets(1)) both.push_back(v);
  const std::vector<Val> list = loads(both);
  std::string members;
  Body load = body(4), take = body(4), store = body(4), rows = body(4);
  load.have_policy();
  for (Val v : list) {
    const std::string words = "raw.l" + n(v);
    const DType storage = k_.operands[k_.values[v].operand].type;
    members += "  " + w_.words_type(v) + " l" + n(v) + ";\n";
    load.need(Body::inputs_of_map(k_.values[v]));
    load.fetch(v, words);
    for (Body* body : {&load, &take, &store}) body->have_words(v, words, storage);
  }
  structs_ += "template <> struct RawOf<0> {\n" + members + "};\n" + lane_text(w_, 0) + scan_state_text(w_, 0, state_layout(k_, 0, lanes()));
  function("load(const Args& a, const At& t, int n, u64 policy, const Row& row, Raw<0>& raw)", load.take());
  take.need(targets(0));
  take_text(w_, take, 0);
  function("take(const Args& a, const At& t, int n, const Raw<0>& raw, const Row& row, LaneOf<0>& lane)", take.take());

  for (Val v = 0; v < k_.values.size(); ++v) {
    const Inst& inst = k_.values[v];
    if (inst.kind != Kind::result) continue;
    const DType from = k_.reductions[inst.reduction].accumulate;
    const std::string value = "lane.x" + n(inst.reduction);
    if (!inst.rounds && compute_type(inst.type) == from) {
      store.have(v, value);
      continue;
    }
    store.line(c_type(compute_type(inst.type)) + " v" + n(v) + "[" + n(w_.V) + "];");
    store.open_loop();
    store.line("v" + n(v) + "[e] = " + (inst.rounds ? round(inst.type, value + "[e]") : cast(from, inst.type, value + "[e]")) + ";");
    store.close_loop();
    store.have(v, "v" + n(v));
  }
  store.need(targets(1));
  for (Val v : view_.element_stores()) store.store(v);
  function("store(const Args& a, const At& t, int n, const Raw<0>& raw, const Row& row, const LaneOf<0>& lane)", store.take());
  for (Val v : view_.row_stores()) rows.store(v);
  function("row(const Args& a, const At& t, int n, Row& row)", row_stage(0, nullptr));
  function("row_store(const Args& a, const At& t, int n, const Row& row)", rows.take());
}

}  // namespace fusec::cuda
