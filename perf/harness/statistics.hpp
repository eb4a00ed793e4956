#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace abxbus::perf {

/// The value below which `share` (0..1) of the samples lie; 0 without samples.
template <class T>
T percentile(std::vector<T>& samples, double share) {
  if (samples.empty()) return T{};
  const auto last = static_cast<double>(samples.size() - 1);
  const auto index = static_cast<std::ptrdiff_t>(share * last + 0.5);
  std::nth_element(samples.begin(), samples.begin() + index, samples.end());
  return samples[static_cast<std::size_t>(index)];
}

/// The middle one; of an even number of samples the mean of the middle two.
inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

}  // namespace abxbus::perf
