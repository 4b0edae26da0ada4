// verify finds what a builder would never make: each promise is broken by hand, behind the graph's back.

#include <gtest/gtest.h>

#include "fusec/graph.h"

namespace fusec {
namespace {

Graph sample() {
  return *parse(R"(graph @g(%x: f32[4,8], %y: f32[8]) -> f32[4] {
    %a = add %x, %y
    %s = sum %a {axes=[1]}
    return %s
  })");
}

/// The error after `damage`, which may change any node.
template <class F>
std::string broken(F damage) {
  const Graph g = sample();
  damage([&](NodeId id) -> Node& { return const_cast<Node&>(g.node(id)); }, const_cast<Port&>(g.inputs()[1]));
  const Status fits = verify(g);
  if (fits) return "no error";
  return fits.error().message + (fits.error().notes.empty() ? "" : " | " + fits.error().notes[0]);
}

TEST(Verify, FindsEachBrokenPromise) {
  EXPECT_EQ(broken([](auto, Port&) {}), "no error");
  EXPECT_EQ(broken([](auto node, Port&) { node(2).args[1] = 3; }), "reads node 3, which is not before it | at node \"a\" (add) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) { node(2).type.shape[0] = 5; }), "has type f32[5,8], its rule gives f32[4,8] | at node \"a\" (add) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) { node(2).type.dtype = DType::f16; }), "has type f16[4,8], its rule gives f32[4,8] | at node \"a\" (add) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) { node(1).type.shape[0] = 3; }),
            "add: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right | at node \"a\" (add) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) { node(1).type.shape[0] = -1; }), "f32[-1]: a dim cannot be negative | at node \"y\" (input) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) {
              Attrs a;
              a.axes = {-1};
              node(3).attrs = std::make_shared<const Attrs>(a);
            }),
            "has attributes that are not in normal form | at node \"s\" (sum) of graph \"g\"");
  EXPECT_EQ(broken([](auto node, Port&) { node(3).attrs = nullptr; }), "has no attributes | at node \"s\" (sum) of graph \"g\"");
  EXPECT_EQ(broken([](auto, Port& p) { p.name = "x"; }), "port \"x\" is there twice");
  EXPECT_EQ(broken([](auto, Port& p) { p.node = 77; }), "is no input of the graph's header | at node \"y\" (input) of graph \"g\"");
}

}  // namespace
}  // namespace fusec
