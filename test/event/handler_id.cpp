#include "support/catch.hpp"

#include <abxbus/handler_id.hpp>

#include <optional>
#include <string>
#include <string_view>

using abxbus::compute_handler_id;

TEST_CASE("the id of a handler with a path", "[D-ID-5][D-ID-6]") {
  CHECK(compute_handler_id("018f8e40-1234-7000-8000-000000001234", "pkg.module.handler", "~/project/app.py:123",
                           "2025-01-02T03:04:05.678901000Z",
                           "StandaloneEvent") == "19ea9fe8-cfbe-541e-8a35-2579e4e9efff");
}

TEST_CASE("the id of a handler without a path", "[D-ID-5][D-ID-6]") {
  const std::string expected = "17795f52-3df9-5c6b-ab99-1e1655357db0";
  const auto id = [](std::optional<std::string_view> path) {
    return compute_handler_id("0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "audit_all", path,
                              "2026-03-04T05:06:07.000000002Z", "*");
  };
  CHECK(id(std::nullopt) == expected);
  CHECK(id("") == expected);
  CHECK(id("unknown") == expected);
}

TEST_CASE("the id of the handler in the example document", "[D-ID-5]") {
  CHECK(compute_handler_id("0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "on_order_created", "~/shop/src/orders.cpp:88",
                           "2026-03-04T05:06:07.000000001Z",
                           "OrderCreatedEvent") == "25f82212-6139-5129-9bd8-65a21f1b16ab");
}

TEST_CASE("every part of a registration changes the id", "[D-ID-5]") {
  const std::string id = compute_handler_id("b", "n", "p", "t", "e");
  CHECK(id == compute_handler_id("b", "n", "p", "t", "e"));
  CHECK(id != compute_handler_id("B", "n", "p", "t", "e"));
  CHECK(id != compute_handler_id("b", "N", "p", "t", "e"));
  CHECK(id != compute_handler_id("b", "n", "P", "t", "e"));
  CHECK(id != compute_handler_id("b", "n", "p", "T", "e"));
  CHECK(id != compute_handler_id("b", "n", "p", "t", "E"));
  CHECK(compute_handler_id("b", "größe", "p", "t", "e") != compute_handler_id("b", "grosse", "p", "t", "e"));
}
