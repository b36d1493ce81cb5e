"use strict";
// Joins the controls of each widget to its answers: reads them, asks `formulas`, writes. What equals the ledger's value stays the link it came as.
{
  const { MIB, KIB, GIB, GB, K_TOKENS } = formulas;
  const printed = (value, digits, unit = "") => `${formulas.fixed(value, digits)} ${unit}`.trim();
  const atLeast = (value, digits, unit = "") => printed(value, formulas.decimals(value, digits), unit);

  const came = new Map();
  const say = (output, ...inside) => {
    if (!came.has(output)) came.set(output, { text: output.textContent.trim(), nodes: [...output.childNodes] });
    const first = came.get(output), text = inside.map((piece) => piece.textContent ?? piece).join("").trim();
    if (output.textContent.trim() !== text) output.replaceChildren(...(text === first.text ? first.nodes : inside));
  };

  const element = (tag, attributes, text) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const absent = (text) => element("span", { class: "absent" }, text);
  const signed = (text) => (/[1-9]/.test(text) && !text.startsWith("−") ? `+${text}` : text);
  // A number of the ledger with its interval, where it has one, as one link to its papers.
  const quoted = (key, shape = (text) => text) => {
    const { text, interval } = kvtier.papers.numbers[key];
    const link = element("a", { class: "num number", href: `#n/${key}` }, shape(text));
    if (interval) link.append(" ", element("span", { class: "also" }, interval));
    return [link];
  };

  // A screen reader hears the answers once the reader rests, all in one, and not at every step of a slider.
  const REST_MS = 700;
  const telling = (root) => {
    let waiting = 0;
    return () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        root.querySelector(".said").textContent = [...root.querySelectorAll("output.live")]
          .map((output) => `${output.textContent.trim()} ${output.parentElement.querySelector(".what")?.textContent.trim() ?? ""}`)
          .join("; ");
      }, REST_MS);
    };
  };

  const widget = (name, start) => {
    const root = document.getElementById(`try-${name}`);
    if (!root) return;
    const control = (of) => document.getElementById(`try-${name}-${of}`);
    const answer = (of, ...inside) => say(control(of), ...inside);
    // What a slider stands at, in words: beside its label, and for a screen reader.
    const shows = (of, text) => {
      control(of).setAttribute("aria-valuetext", text);
      control(of).parentElement.querySelector(".now").textContent = text;
    };
    const update = start({ root, data: root.dataset, control, answer, shows });
    const tell = telling(root);
    root.addEventListener("input", (event) => { update(event.target); tell(); });
    update(null);
    for (const part of root.querySelectorAll("[hidden]")) part.hidden = false;
  };

  widget("capacity", ({ data, control, answer, shows }) => () => {
    const model = control("model").selectedOptions[0], format = control("format");
    const fp8 = format.querySelector("[value=fp8]");
    fp8.disabled = !model.dataset.fp8;
    if (fp8.disabled) format.value = "fp16";
    const { layers, kvHeads, headDim, weightsGb } = model.dataset;
    const exponent = Number(control("context").value), tokens = 2 ** exponent * K_TOKENS;
    const perToken = formulas.kvBytesPerToken(Number(layers), Number(kvHeads), Number(headDim), Number(model.dataset[format.value]));
    const bytes = formulas.kvBytes(perToken, tokens);
    shows("context", `${exponent === 10 ? "1M" : `${2 ** exponent}K`} tokens`);
    answer("token", printed(perToken / KIB, 0, "KiB"));
    answer("block", printed(formulas.kvBytes(perToken, Number(data.blockTokens)) / MIB, 2, "MiB"));
    answer("gib", atLeast(bytes / GIB, 2, "GiB"));
    answer("gb", atLeast(bytes / GB, 1, "GB"));
    answer("sequences", printed(formulas.wholeContexts(Math.round(Number(data.regionGb) * GB), bytes), 0));
    // Of the weights beside a cache in another format the ledger says nothing.
    const stated = weightsGb && format.value === "fp16";
    answer("crossover", stated ? printed(formulas.crossoverTokens(Math.round(Number(weightsGb) * GB), perToken), 0, "tokens") : absent("weights not stated"));
  });

  widget("transfer", ({ data, control, answer, shows }) => () => {
    const gbps = Number(control("bandwidth").value), mfu = Number(control("mfu").value) / 100;
    const perToken = Number(data.kvPerToken), tokens = Number(data.blockTokens), windowMs = Number(data.windowMs);
    const moveUs = formulas.blockTransferUs(formulas.kvBytes(perToken, tokens), gbps);
    const computeMs = formulas.regenerationMs(Number(data.parameters), tokens, Number(data.peakTflops), mfu);
    shows("bandwidth", printed(gbps, 1, "GB/s"));
    answer("move", printed(moveUs, 0, "µs"));
    answer("regenerate", printed(computeMs, 0, "ms"));
    answer("ratio", printed(formulas.regenerateOverMove(computeMs, moveUs), 0));
    answer("window", printed(formulas.windowBytes(windowMs, gbps) / GB, 2, "GB"));
    answer("positions", printed(Math.floor(formulas.windowPositions(windowMs, gbps, perToken)), 0, "positions"));
  });

  widget("alpha", ({ root, data, control, answer, shows }) => {
    const runs = JSON.parse(data.runs), alphas = Object.keys(runs), least = Math.min(...alphas), most = Math.max(...alphas);
    control("alpha").value = formulas.placeOf(least, most, Number(data.alpha));
    return () => {
      const alpha = formulas.at(least, most, Number(control("alpha").value));
      shows("alpha", `α = ${alpha}`);
      answer("steps", printed(formulas.halfLifeSteps(alpha), 1, "steps"));
      answer("seconds", printed(formulas.halfLifeS(alpha, Number(data.rate)), 2, "s"));
      answer("last", `α = ${alpha}`);
      for (const row of root.querySelectorAll("[data-token]")) {
        const scores = formulas.emaScores(alpha, row.dataset.attention.trim().split(" ").map(Number));
        scores.forEach((score, step) => answer(`${row.dataset.token}${step}`, atLeast(score, 4)));
      }
      const simulated = String(formulas.nearest(alpha, alphas.map(Number)));
      answer("nearest", `EMA ${simulated}`);
      answer("revision2", ...quoted(runs[simulated][0]));
      answer("revision3", ...quoted(runs[simulated][1]));
    };
  });

  widget("priority", ({ root, data, control, answer, shows }) => {
    const names = ["recency", "ema", "anchor"], cuts = [Number(data.cutHbm), Number(data.cutPinned)];
    const TIERS = { T0: "T0, pinned HBM", T1: "T1, evictable HBM", T2: "T2, CXL" };
    const [weight, signal] = ["weight", "signal"].map((kind) => names.map((name) => control(`${kind}-${name}`)));
    let exact = weight.map((slider) => Number(slider.value));
    const at = root.querySelector(".stack");
    at.style.setProperty("--cut-hbm", cuts[0]);
    at.style.setProperty("--cut-pinned", cuts[1]);
    return (moved) => {
      const index = weight.indexOf(moved);
      if (index >= 0) exact = formulas.rescaled(exact, index, Number(moved.value));
      const weights = formulas.hundredths(exact), signals = signal.map((slider) => Number(slider.value));
      names.forEach((name, index) => {
        weight[index].value = weights[index];
        shows(`weight-${name}`, printed(weights[index], 2));
        shows(`signal-${name}`, printed(signals[index], 2));
        answer(name, printed(weights[index] * signals[index], 4));
        root.querySelector(`.stack-parts .of-${name}`).style.width = `${100 * weights[index] * signals[index]}%`;
      });
      const value = formulas.priority(signals, weights);
      answer("priority", printed(value, 4));
      answer("tier", TIERS[formulas.tierOf(value, cuts)]);
    };
  });

  widget("policies", ({ root, control, answer }) => {
    const runs = JSON.parse(root.querySelector(".runs").textContent), by = ["revision", "budget", "policy", "state"];
    const find = (wanted) => runs.find((run) => by.every((one) => run[one] === wanted[one]));
    const ITSELF = { lru: "LRU itself", min: "the optimum itself" };
    return () => {
      const wanted = Object.fromEntries(by.map((one) => [one, control(one).value]));
      for (const one of by) for (const option of control(one).options) option.disabled = !find({ ...wanted, [one]: option.value });
      const run = find(wanted);
      answer("hit", ...quoted(run.hit));
      answer("margin", ...(run.margin ? quoted(run.margin, signed) : [absent(ITSELF[run.policy] ?? "not computed")]));
      answer("regret", ...(run.regret ? quoted(run.regret) : [absent(ITSELF[run.policy] ?? "not computed")]));
      for (const one of ["lru", "optimum"]) answer(one, ...(run[one] ? quoted(run[one]) : [absent("not computed")]));
      answer("from", `experiment ${run.experiment}`.replace("experiment policy family", "the policy family").replace("experiment grid", "the grid"));
    };
  });
}
