// The distribution of one step, recomputed in the browser while a slider moves. Mirrors inference/sampling.py, whose exact values
// replace these ones when the slider is released.
//
// Known exactly: the largest logits, and those of the tokens already in the text. The others are bins, each with its count, mean
// and variance. A bin of mean m and variance v weighs count · exp(m) · (1 + v / 2): the second-order expansion of the sum of its
// exponentials. So a token among the bins has no name here, and how many of them a cut keeps is known to within a part of a bin.

const ORDERS = {
  huggingface: ["temperature", "top_k", "top_p", "min_p"],
  llamacpp: ["top_k", "top_p", "min_p", "temperature"],
};

function unpack(text, ArrayType) {
  return new ArrayType(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
}

// What Python sends for a step, ready to compute with.
function readScores(sent) {
  return {
    size: sent.size,
    u: null, // of the step, told apart from its scores
    labels: sent.labels,
    ids: unpack(sent.ids, Uint32Array),
    logits: unpack(sent.logits, Float32Array),
    seen: new Set(sent.seen),
    counts: unpack(sent.counts, Uint32Array),
    means: unpack(sent.means, Float64Array),
    variances: unpack(sent.variances, Float32Array),
    ranked: { penalty: undefined },
  };
}

// Known tokens by decreasing penalised logit, ties by id: `positions` in the arrays received, and their `values`.
function rank(scores, penalty) {
  if (scores.ranked.penalty !== penalty) {
    const penalised = Float64Array.from(scores.logits, (logit, position) => {
      if (penalty === null || !scores.seen.has(scores.ids[position])) return logit;
      return logit < 0 ? logit * penalty : logit / penalty;
    });
    const positions = Array.from(penalised.keys()).sort((a, b) => penalised[b] - penalised[a] || scores.ids[a] - scores.ids[b]);
    scores.ranked = { penalty, positions, values: Float64Array.from(positions, (position) => penalised[position]) };
  }
  return scores.ranked;
}

// Weights relative to the favourite's, at a temperature: one for each known token, one for each bin, and their logarithm's part.
function weigh(scores, values, temperature) {
  const top = values[0] / temperature;
  const known = values.map((value) => Math.exp(value / temperature - top));
  const bins = new Float64Array(scores.counts.length);
  const entropyTerms = new Float64Array(scores.counts.length);
  for (let bin = 0; bin < bins.length; bin++) {
    const mean = scores.means[bin] / temperature - top;
    const half = scores.variances[bin] / (2 * temperature ** 2);
    const weight = scores.counts[bin] * Math.exp(mean);
    if (weight === 0) continue;
    bins[bin] = weight * (1 + half);
    entropyTerms[bin] = weight * (mean + half * (mean + 2));
  }
  return { known, bins, entropyTerms };
}

// Σ of one value a bin, over the first `tokens` tokens of the bins; the last bin counts for the share of it that is within.
function overBins(scores, values, tokens) {
  let sum = 0;
  for (let bin = 0; bin < values.length && tokens > 0; bin++) {
    sum += values[bin] * Math.min(1, tokens / scores.counts[bin]);
    tokens -= scores.counts[bin];
  }
  return sum;
}

// The weight of the known tokens that pass a test and of the first `others` tokens of the bins.
function mass(scores, weights, isIn, others) {
  let sum = overBins(scores, weights.bins, others);
  for (let rank = 0; rank < weights.known.length; rank++) if (isIn(rank)) sum += weights.known[rank];
  return sum;
}

// Each cut marks in kept.cutBy the known tokens it removes and lowers kept.others, the number of binned tokens that stay.
const CUTS = {
  top_k(topK, kept, scores, values) {
    if (topK >= scores.size) return;
    const threshold = topK <= values.length ? values[topK - 1] : -Infinity;
    mark(kept, "top_k", (rank) => values[rank] < threshold);
    kept.others = Math.min(kept.others, Math.max(0, topK - values.length));
  },

  top_p(topP, kept, scores, values, weights) {
    if (topP >= 1) return;
    const target = topP * mass(scores, weights, (rank) => !kept.cutBy[rank], kept.others);
    const still = [...values.keys()].filter((rank) => !kept.cutBy[rank]);
    let reached = 0;
    let size = 0;
    while (size < still.length && (size === 0 || reached < target)) reached += weights.known[still[size++]];
    if (reached < target) {
      kept.others = Math.min(kept.others, tokensToReach(scores, weights.bins, target - reached));
      return;
    }
    // Equal weights straddling the cut: the larger ids stay, as in Python.
    const last = weights.known[still[size - 1]];
    const equals = still.filter((rank) => weights.known[rank] === last);
    const above = still.filter((rank) => weights.known[rank] > last).length;
    const staying = new Set(equals.slice(equals.length - (size - above)));
    mark(kept, "top_p", (rank) => weights.known[rank] < last || (weights.known[rank] === last && !staying.has(rank)));
    kept.others = 0;
  },

  min_p(minP, kept, scores, values, weights, temperature) {
    if (minP === 0) return;
    const least = Math.log(minP);
    const top = values[0] / temperature;
    mark(kept, "min_p", (rank) => values[rank] / temperature - top < least);
    let within = 0;
    for (let bin = 0; bin < scores.counts.length && scores.means[bin] / temperature - top >= least; bin++) within += scores.counts[bin];
    kept.others = Math.min(kept.others, within);
  },
};

function mark(kept, stage, isCut) {
  for (let rank = 0; rank < kept.cutBy.length; rank++) if (!kept.cutBy[rank] && isCut(rank)) kept.cutBy[rank] = stage;
}

function tokensToReach(scores, bins, missing) {
  let tokens = 0;
  for (let bin = 0; bin < bins.length; bin++) {
    if (bins[bin] >= missing) return tokens + Math.ceil((scores.counts[bin] * missing) / bins[bin]);
    missing -= bins[bin];
    tokens += scores.counts[bin];
  }
  return tokens;
}

// One step under some settings, in the shape Python's exact one has (inference/charts/bench.py). choice.id is null when u falls
// among the bins.
function sample(scores, settings, shown) {
  const { positions, values } = rank(scores, settings.repetition_penalty);
  const isGreedy = settings.temperature === 0;
  const hasTemperatureFirst = settings.order === "huggingface";
  const temperature = isGreedy ? 1 : settings.temperature;
  const seenThrough = hasTemperatureFirst ? temperature : 1; // the temperature the cuts look through

  const uncut = weigh(scores, values, seenThrough);
  const binned = scores.counts.reduce((sum, tokens) => sum + tokens, 0);
  const uncutTotal = mass(scores, uncut, () => true, binned);

  const kept = { cutBy: new Array(values.length).fill(null), others: binned };
  for (const stage of ORDERS[settings.order]) {
    if (isGreedy || stage === "temperature" || settings[stage] === null) continue;
    CUTS[stage](settings[stage], kept, scores, values, uncut, seenThrough);
  }

  const isKept = (rank) => !kept.cutBy[rank];
  const final = hasTemperatureFirst ? uncut : weigh(scores, values, temperature);
  const finalTotal = mass(scores, final, isKept, kept.others);
  const probability = (rank) => (kept.cutBy[rank] ? 0 : final.known[rank] / finalTotal);

  let entropyNats = Math.log(finalTotal) - overBins(scores, final.entropyTerms, kept.others) / finalTotal;
  let keptKnown = 0;
  for (let rank = 0; rank < values.length; rank++) {
    if (kept.cutBy[rank]) continue;
    keptKnown += 1;
    if (final.known[rank] > 0) entropyNats -= (final.known[rank] * Math.log(final.known[rank])) / finalTotal;
  }
  const entropy = Math.max(0, entropyNats / Math.LN2);
  const chosen = isGreedy ? { rank: 0, low: 0 } : draw(scores.u, values.length, probability);
  const choice = {
    id: chosen.rank === null ? null : scores.ids[positions[chosen.rank]],
    low: chosen.low,
    prob: chosen.rank === null ? null : probability(chosen.rank),
  };

  const ranks = [...values.keys()].slice(0, shown);
  if (chosen.rank !== null && chosen.rank >= shown) ranks[shown - 1] = chosen.rank;
  const rows = ranks.map((rank) => ({
    id: scores.ids[positions[rank]],
    rank: rank + 1,
    label: scores.labels[positions[rank]],
    logit: scores.logits[positions[rank]],
    scaled: values[rank] / temperature,
    uncut: uncut.known[rank] / uncutTotal,
    cutBy: kept.cutBy[rank],
    prob: probability(rank),
    chosen: rank === chosen.rank,
  }));
  const keptCount = keptKnown + kept.others;
  const isShown = new Set(ranks);
  const rest = {
    tokens: scores.size - rows.length,
    kept: keptCount - rows.filter((row) => !row.cutBy).length,
    uncut: mass(scores, uncut, (rank) => !isShown.has(rank), binned) / uncutTotal,
    prob: mass(scores, final, (rank) => !isShown.has(rank) && !kept.cutBy[rank], kept.others) / finalTotal,
  };
  const keptMass = mass(scores, uncut, isKept, kept.others) / uncutTotal;
  const removed = (mass(scores, uncut, (rank) => !isKept(rank), binned) - overBins(scores, uncut.bins, kept.others)) / uncutTotal;
  return {
    rows,
    rest: rest.tokens ? rest : null,
    u: isGreedy ? null : scores.u,
    choice,
    figures: { entropy, effective: 2 ** entropy, kept: keptCount, size: scores.size, keptMass, removed, sum: 1 },
  };
}

// Kept tokens lie end to end from 0 to 1 by decreasing probability; the one whose segment holds u.
function draw(u, length, probability) {
  let low = 0;
  for (let rank = 0; rank < length; rank++) {
    const high = low + probability(rank);
    if (u < high) return { rank, low };
    low = high;
  }
  return { rank: null, low };
}
