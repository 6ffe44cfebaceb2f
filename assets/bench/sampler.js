// The distribution of one step, recomputed in the browser while a slider moves. Mirrors inference/sampling.py, whose exact values
// replace these ones when the slider is released.
//
// Known exactly: the largest logits, and those of the tokens already in the text. The others are bins, each with its count, mean
// and variance. A bin of mean m and variance v weighs count · exp(m) · (1 + v / 2): the second-order expansion of the sum of its
// exponentials. So a token among the bins has no name here, and how many of them a cut keeps is known to within a part of a bin, in
// which logits are taken to be spread evenly.

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
    key: sent.key,
    size: sent.size,
    largest: sent.largest,
    u: null, // of the step, told apart from its scores
    labels: sent.labels,
    ids: unpack(sent.ids, Uint32Array),
    logits: unpack(sent.logits, Float32Array),
    seen: new Set(sent.seen),
    counts: unpack(sent.counts, Uint32Array),
    means: unpack(sent.means, Float64Array),
    variances: unpack(sent.variances, Float32Array),
    binsTop: sent.binsTop, // no binned logit is larger
    ranked: { penalty: undefined },
  };
}

// Known tokens by decreasing penalised logit, ties by id: `positions` in the arrays received, their `values`, and how many binned
// tokens are `ahead` of each: none, unless it is in the text with a logit too low to be among the largest.
function rank(scores, penalty) {
  if (scores.ranked.penalty !== penalty) {
    const penalised = Float64Array.from(scores.logits, (logit, position) => {
      if (penalty === null || !scores.seen.has(scores.ids[position])) return logit;
      return logit < 0 ? logit * penalty : logit / penalty;
    });
    const positions = Array.from(penalised.keys()).sort((a, b) => penalised[b] - penalised[a] || scores.ids[a] - scores.ids[b]);
    const values = Float64Array.from(positions, (position) => penalised[position]);
    const ahead = values.map((value) => (value >= scores.binsTop ? 0 : binnedAbove(scores, value)));
    scores.ranked = { penalty, positions, values, ahead };
  }
  return scores.ranked;
}

// How many binned tokens have at least this logit.
function binnedAbove(scores, logit) {
  let tokens = 0;
  for (let bin = 0; bin < scores.counts.length; bin++) {
    const spread = Math.sqrt(3 * scores.variances[bin]); // half the width of an even spread of this variance
    const share = spread ? (scores.means[bin] + spread - logit) / (2 * spread) : Number(scores.means[bin] >= logit);
    tokens += scores.counts[bin] * Math.min(1, Math.max(0, share));
  }
  return Math.round(tokens);
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

// Σ of one value a bin, over the tokens of the bins from one rank to another; a bin counts for the share of it that is within.
function overBins(scores, values, from, to) {
  let sum = 0;
  for (let bin = 0, start = 0; bin < values.length && start < to; start += scores.counts[bin++]) {
    const end = start + scores.counts[bin];
    if (end > from) sum += (values[bin] * (Math.min(end, to) - Math.max(start, from))) / scores.counts[bin];
  }
  return sum;
}

// The weight of the known tokens that pass a test and of the first `others` tokens of the bins. Smallest first: the sum is closer.
function mass(scores, weights, isIn, others) {
  let sum = overBins(scores, weights.bins, 0, others);
  for (let rank = weights.known.length - 1; rank >= 0; rank--) if (isIn(rank)) sum += weights.known[rank];
  return sum;
}

// Each cut marks in kept.cutBy the known tokens it removes and lowers kept.others, the number of binned tokens that stay.
const CUTS = {
  top_k(topK, kept, scores, { values, ahead }) {
    if (topK >= scores.size) return;
    let within = values.length;
    while (within > 1 && within + ahead[within - 1] > topK) within -= 1;
    mark(kept, "top_k", (rank) => values[rank] < values[within - 1]);
    kept.others = Math.min(kept.others, topK - within);
  },

  top_p(topP, kept, scores, { values, ahead }, weights) {
    if (topP >= 1) return;
    const total = mass(scores, weights, (rank) => !kept.cutBy[rank], kept.others);
    const still = [...values.keys()].filter((rank) => !kept.cutBy[rank] && weights.known[rank] > 0);
    const massAhead = (rank) => overBins(scores, weights.bins, 0, Math.min(ahead[rank], kept.others)) / total;
    let reached = 0;
    let size = 0;
    while (size < still.length && (size === 0 || reached + massAhead(still[size]) < topP)) reached += weights.known[still[size++]] / total;
    const within = Math.max(ahead[still[size - 1]], binnedToReach(scores, weights.bins, (topP - reached) * total));
    kept.others = Math.min(kept.others, within);
    // Equal weights straddling the cut: the larger ids stay, as in Python.
    const last = weights.known[still[size - 1]];
    const equals = still.filter((rank) => weights.known[rank] === last);
    const above = still.filter((rank) => weights.known[rank] > last).length;
    const staying = new Set(equals.slice(equals.length - (size - above)));
    mark(kept, "top_p", (rank) => weights.known[rank] < last || (weights.known[rank] === last && !staying.has(rank)));
  },

  min_p(minP, kept, scores, { values }, weights, temperature) {
    if (minP === 0) return;
    const least = Math.log(minP);
    const top = values[0] / temperature;
    mark(kept, "min_p", (rank) => values[rank] / temperature - top < least);
    kept.others = Math.min(kept.others, binnedAbove(scores, (top + least) * temperature));
  },
};

function mark(kept, stage, isCut) {
  for (let rank = 0; rank < kept.cutBy.length; rank++) if (!kept.cutBy[rank] && isCut(rank)) kept.cutBy[rank] = stage;
}

// How many binned tokens, the largest first, weigh this much together.
function binnedToReach(scores, bins, missing) {
  let tokens = 0;
  for (let bin = 0; bin < bins.length && missing > 0 && bins[bin] > 0; bin++) {
    if (bins[bin] >= missing) return tokens + Math.ceil((scores.counts[bin] * missing) / bins[bin]);
    missing -= bins[bin];
    tokens += scores.counts[bin];
  }
  return tokens;
}

// One step under some settings, in the shape Python's exact one has (inference/charts/bench.py). choice.id is null when u falls
// among the bins.
function sample(scores, settings, shown) {
  const ranked = rank(scores, settings.repetition_penalty);
  const { positions, values, ahead } = ranked;
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
    CUTS[stage](settings[stage], kept, scores, ranked, uncut, seenThrough);
  }

  const isKept = (rank) => !kept.cutBy[rank];
  const final = hasTemperatureFirst ? uncut : weigh(scores, values, temperature);
  const finalTotal = mass(scores, final, isKept, kept.others);
  const probability = (rank) => (kept.cutBy[rank] ? 0 : final.known[rank] / finalTotal);

  let entropyNats = Math.log(finalTotal) - overBins(scores, final.entropyTerms, 0, kept.others) / finalTotal;
  let keptKnown = 0;
  for (let rank = 0; rank < values.length; rank++) {
    if (kept.cutBy[rank]) continue;
    keptKnown += 1;
    if (final.known[rank] > 0) entropyNats -= (final.known[rank] * Math.log(final.known[rank])) / finalTotal;
  }
  const entropy = Math.max(0, entropyNats / Math.LN2);
  const binsAhead = (rank) => overBins(scores, final.bins, 0, Math.min(ahead[rank], kept.others)) / finalTotal;
  const chosen = isGreedy ? { rank: 0, low: 0 } : draw(scores.u, values.length, probability, binsAhead, kept.others > 0);
  const choice = {
    id: chosen.rank === null ? null : scores.ids[positions[chosen.rank]],
    low: chosen.low,
    prob: chosen.rank === null ? null : probability(chosen.rank),
  };

  const ranks = [...values.keys()].slice(0, shown);
  if (chosen.rank !== null && chosen.rank >= shown) ranks[shown - 1] = chosen.rank;
  const rows = ranks.map((rank) => ({
    id: scores.ids[positions[rank]],
    rank: rank + 1 + ahead[rank],
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
  const sum = rows.reduce((sum, row) => sum + row.prob, rest.prob);
  const removed = (mass(scores, uncut, (rank) => !isKept(rank), 0) + overBins(scores, uncut.bins, kept.others, binned)) / uncutTotal;
  // All of it only when nothing was removed, however the sum is rounded.
  const keptMass = removed === 0 ? 1 : Math.min(mass(scores, uncut, isKept, kept.others) / uncutTotal, 1 - Number.EPSILON / 2);
  return {
    rows,
    rest: rest.tokens ? rest : null,
    u: isGreedy ? null : scores.u,
    choice,
    figures: { entropy, effective: 2 ** entropy, kept: keptCount, known: values.length + binned, size: scores.size, keptMass, removed, sum },
  };
}

// Kept tokens lie end to end from 0 to 1 by decreasing probability; the one whose segment holds u, null if it is a binned one. A sum a
// hair short of 1 leaves u beyond the last.
function draw(u, length, probability, binsAhead, hasOthers) {
  let known = 0;
  let last = null;
  for (let rank = 0; rank < length; rank++) {
    const low = known + binsAhead(rank);
    if (u < low) return { rank: null, low };
    if (probability(rank) > 0) last = { rank, low };
    known += probability(rank);
    if (u < low + probability(rank)) return last;
  }
  return hasOthers ? { rank: null, low: known } : last;
}
