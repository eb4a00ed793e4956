#include <abxbus/handler_id.hpp>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>

namespace abxbus {
namespace {

/// UUIDv5 of `abxbus-handler` in the DNS namespace of RFC 4122.
constexpr boost::uuids::uuid handler_namespace = {
    {0x98, 0xdc, 0x1a, 0xae, 0x79, 0x8a, 0x59, 0x7c, 0x8b, 0x2e, 0x2c, 0x05, 0x11, 0xf4, 0xa8, 0x1a}};

}  // namespace

std::string compute_handler_id(std::string_view bus_id, std::string_view name,
                               std::optional<std::string_view> file_path, std::string_view registered_at,
                               std::string_view pattern) {
  const std::string_view path = file_path && !file_path->empty() ? *file_path : "unknown";
  std::string seed;
  seed.reserve(bus_id.size() + name.size() + path.size() + registered_at.size() + pattern.size() + 4);
  seed.append(bus_id).append("|").append(name).append("|").append(path).append("|");
  seed.append(registered_at).append("|").append(pattern);
  boost::uuids::name_generator_sha1 generator(handler_namespace);
  return boost::uuids::to_string(generator(seed.data(), seed.size()));
}

}  // namespace abxbus
