#pragma once

#include "report/facts.h"
#include "report/html.h"

// The drawings of the HTML page. Each returns an empty piece when the run holds nothing to draw.
namespace anvil::report {

// Requests as bars on the run's clock: one band per kind of work and lane, concurrent requests
// stacked; below, on the same axis, how many were under way and what the engine's processes used.
Html timeline_chart(const Facts& facts);
// Readings of the host and its GPUs on the same axis as timeline_chart().
Html hardware_charts(const Facts& facts);
// Distribution of TTFO, TTFV and E2E over all requests of one lane (an element of results.json
// "lanes").
Html latency_chart(const Facts& facts, const Json& lane);
// Latency by percentile on an axis of nines: TTFO, E2E, TPOT and chunk gaps of one lane.
Html nines_chart(const Json& lane);
// Share of output events by the tokens in them; nothing where the engine gives no count, or always
// the same.
Html tokens_per_chunk_chart(const Json& lane);
// Share of drafts whose token at each position was accepted.
Html acceptance_chart(const Json& lane);
// TTFO and TPOT against throughput over the lanes of a run, with their objectives.
Html throughput_charts(const Facts& facts);
// Small multiples over context length: TTFO, prefill and needles; a row per cache state.
Html ladder_charts(const Facts& facts);
// Start-up phases as one divided bar.
Html startup_chart(const Facts& facts);

}  // namespace anvil::report
