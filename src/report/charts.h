#pragma once

#include "report/facts.h"
#include "report/html.h"

// The drawings of the HTML page. Each returns an empty piece when the run holds nothing to draw.
namespace anvil::report {

// Requests as bars on the run's clock: one band per kind of work and lane, concurrent requests
// stacked.
Html timeline_chart(const Facts& facts);
// Memory, processor and GPU readings on the same axis as timeline_chart().
Html hardware_charts(const Facts& facts);
// Distribution of TTFO, TTFV and E2E over all requests of one lane (an element of results.json
// "lanes").
Html latency_chart(const Facts& facts, const Json& lane);
// Small multiples over context length: TTFO, prefill and needles; a row per cache state.
Html ladder_charts(const Facts& facts);
// Start-up phases as one divided bar.
Html startup_chart(const Facts& facts);

}  // namespace anvil::report
