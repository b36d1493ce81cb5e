"use strict";
// Formulas of what a reader can move, each the same as the Python function named above it, which a test holds it to. No document here.
const formulas = (() => {
  const KIB = 2 ** 10, MIB = 2 ** 20, GIB = 2 ** 30, GB = 1e9, K_TOKENS = 1024;

  // kvtier.analytic.geometry.ModelGeometry.kv_bytes_per_token
  const kvBytesPerToken = (layers, kvHeads, headDim, bytesPerElement) => 2 * layers * kvHeads * headDim * bytesPerElement;
  // kvtier.analytic.geometry.ModelGeometry.kv_bytes
  const kvBytes = (perToken, tokens) => perToken * tokens;
  // kvtier.analytic.capacity.crossover_tokens
  const crossoverTokens = (weightBytes, perToken) => weightBytes / perToken;
  // kvtier.analytic.capacity.whole_contexts: by the remainder, for a quotient may round up to a whole number that does not fit.
  const wholeContexts = (availableBytes, bytes) => (availableBytes - availableBytes % bytes) / bytes;

  // kvtier.analytic.tiers.block_transfer_us
  const blockTransferUs = (blockBytes, gbps) => blockBytes / (gbps * GB) * 1e6;
  // kvtier.analytic.tiers.linear_flop
  const linearFlop = (parameters, tokens) => 2 * parameters * tokens;
  // kvtier.analytic.tiers.regeneration_ms
  const regenerationMs = (parameters, tokens, peakTflops, mfu) => linearFlop(parameters, tokens) / (peakTflops * 1e12 * mfu) * 1e3;
  // kvtier.analytic.tiers.regenerate_over_move
  const regenerateOverMove = (regenerateMs, moveUs) => regenerateMs * 1e3 / moveUs;
  // kvtier.analytic.tiers.window_bytes
  const windowBytes = (windowMs, gbps) => windowMs * (gbps * GB) / 1e3;
  // kvtier.analytic.tiers.window_positions
  const windowPositions = (windowMs, gbps, perToken) => windowBytes(windowMs, gbps) / perToken;

  // kvtier.analytic.scoring.ema_update
  const emaUpdate = (alpha, attention, previous) => alpha * attention + (1 - alpha) * previous;
  // kvtier.analytic.scoring.ema_scores
  const emaScores = (alpha, attention, start = 0) => attention.map((value) => (start = emaUpdate(alpha, value, start)));
  // kvtier.analytic.scoring.half_life_steps
  const halfLifeSteps = (alpha) => Math.log(0.5) / Math.log1p(-alpha);
  // kvtier.analytic.scoring.half_life_s
  const halfLifeS = (alpha, stepsPerS) => halfLifeSteps(alpha) / stepsPerS;

  // math.fsum: the exact sum, rounded once, so that a priority on a cut falls to the same side of it. For finite values that do not overflow.
  const exactSum = (values) => {
    const partials = [];
    for (let x of values) {
      let kept = 0;
      for (let y of partials) {
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const high = x + y, low = y - (high - x);
        if (low) partials[kept++] = low;
        x = high;
      }
      partials.length = kept;
      partials.push(x);
    }
    let sum = partials.pop() ?? 0, low = 0;
    while (partials.length && !low) {
      const high = sum, next = partials.pop();
      sum = high + next;
      low = next - (sum - high);
    }
    // Half way between two doubles, what is smaller still decides.
    const doubled = 2 * low;
    if (partials.length && Math.sign(low) === Math.sign(partials.at(-1)) && sum + doubled - sum === doubled) sum += doubled;
    return sum;
  };
  // kvtier.analytic.scoring.priority
  const priority = (signals, weights) => exactSum(signals.map((signal, index) => weights[index] * signal));
  // kvtier.analytic.scoring.tier_of
  const tierOf = (value, [toHbm, toPinned]) => (value >= toPinned ? "T0" : value >= toHbm ? "T1" : "T2");

  // Weights that sum to 1 after one of them is set: the others keep their proportion, or share equally what they did not have.
  const rescaled = (weights, moved, value) => {
    const others = exactSum(weights.filter((_, index) => index !== moved));
    return weights.map((weight, index) =>
      index === moved ? value : others > 0 ? (1 - value) * weight / others : (1 - value) / (weights.length - 1));
  };
  // Weights in whole hundredths that sum to 1: what is printed is what is used. What rounding down leaves goes to the largest remainders.
  const hundredths = (weights) => {
    const exact = weights.map((weight) => Math.round(weight * 1e11) / 1e9), whole = exact.map(Math.floor);
    const order = [...exact.keys()].sort((one, other) => (exact[other] - whole[other]) - (exact[one] - whole[one]) || one - other);
    const left = 100 - whole.reduce((sum, part) => sum + part, 0);
    for (const index of order.slice(0, left)) whole[index] += 1;
    return whole.map((part) => part / 100);
  };

  // A value on a logarithmic scale from `least` to `most`, to three digits that count, by its place from 0 to 1; and the place of a value.
  const at = (least, most, place) => Number((least * (most / least) ** place).toPrecision(3));
  const placeOf = (least, most, value) => Math.log(value / least) / Math.log(most / least);
  // The candidate nearest to a value by their ratio.
  const nearest = (value, candidates) =>
    candidates.reduce((best, one) => (Math.abs(Math.log(one / value)) < Math.abs(Math.log(best / value)) ? one : best));

  // f"{value:,.{digits}f}" of Python: the exact value of the double is rounded, a tie to the even digit.
  const fixed = (value, digits) => {
    let text = Math.abs(value).toFixed(digits);
    const doubled = Math.abs(value) * 2 ** (digits + 1);
    // A double is a tie where it is an odd multiple of 2^-(digits+1); toFixed rounds that up, Python to the even digit.
    if (Number.isInteger(doubled) && doubled % 2 === 1 && Number(text.at(-1)) % 2 === 1) text = text.slice(0, -1) + (Number(text.at(-1)) - 1);
    const [whole, part] = text.split(".");
    const sign = value < 0 || Object.is(value, -0) ? "-" : "";
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part === undefined ? "" : `.${part}`);
  };
  // Decimals that show two digits that count, and `least` of them at least: kvtier.analytic.numbers.attention.two_digits.
  const decimals = (value, least) => (value > 0 ? Math.max(least, 1 - Math.floor(Math.log10(value))) : least);

  return {
    KIB, MIB, GIB, GB, K_TOKENS, kvBytesPerToken, kvBytes, crossoverTokens, wholeContexts, blockTransferUs, linearFlop, regenerationMs,
    regenerateOverMove, windowBytes, windowPositions, emaUpdate, emaScores, halfLifeSteps, halfLifeS, exactSum, priority, tierOf, rescaled,
    hundredths, at, placeOf, nearest, fixed, decimals,
  };
})();
