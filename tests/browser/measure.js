// What a reader sees of the page, in one pass over it. Positions are in the page, not in the viewport.
window.__measure = (() => {
  // Content that is not laid out until it comes near has no boxes; what moves has none that hold. A sheet of ours needs no leave of the page's policy.
  const still = new CSSStyleSheet();
  still.replaceSync(`* { content-visibility: visible !important; animation: none !important; transition: none !important }
    html { scroll-behavior: auto !important }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];

  const ink = document.createElement("canvas").getContext("2d");
  // Chromium keeps boxes for what a drawing defines, and within a <g> that is not displayed: neither is drawn.
  const undrawn = (element) => element instanceof SVGElement && element.closest("svg") !== element && (
    element.closest("defs, symbol, clipPath, mask, pattern, marker") !== null ||
    (element.tagName === "g" && getComputedStyle(element).display === "none") || undrawn(element.parentElement));
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !undrawn(element);
  const short = (text) => { const words = text.trim().replace(/\s+/g, " "); return words.length > 40 ? words.slice(0, 39) + "…" : words; };
  const svgOf = (element) => { let svg = element.closest("svg"); while (svg?.parentElement?.closest("svg")) svg = svg.parentElement.closest("svg"); return svg; };

  // The nearest thing with a name, from the inside out.
  function place(element) {
    const named = element.closest("[id]");
    const inner = named ?? element.closest("svg, table, section, figure, body");
    return inner.tagName.toLowerCase() + (inner.id ? "#" + inner.id : "");
  }

  function describe(element) {
    const tag = element.tagName.toLowerCase();
    const named = element.id ? "#" + element.id : element.getAttribute("class") ? "." + element.getAttribute("class").trim().split(/\s+/)[0] : "";
    const words = short(element.getAttribute("aria-label") || element.textContent || element.getAttribute("href") || "");
    return `<${tag}${named}> ${words ? `"${words}" ` : ""}in ${place(element.parentElement ?? element)}`;
  }

  function pageBox(rect) {
    return { left: rect.left + scrollX, right: rect.right + scrollX, top: rect.top + scrollY, bottom: rect.bottom + scrollY };
  }

  // Where text of an element can be seen, and in which layer: what is fixed or sticky may lie over the rest.
  const frames = new Map();
  function frame(element) {
    if (!element) return { left: 0, top: 0, right: Infinity, bottom: Infinity, layer: null };
    if (frames.has(element)) return frames.get(element);
    const outer = frame(element.parentElement);
    const look = getComputedStyle(element);
    const found = { ...outer };
    // An svg cuts off what sticks out of it, which is to be found and not to be left out.
    if (!(element instanceof SVGElement) && element !== document.documentElement && element !== document.body) {
      const box = pageBox(element.getBoundingClientRect());
      if (look.overflowX !== "visible") { found.left = Math.max(found.left, box.left); found.right = Math.min(found.right, box.right); }
      if (look.overflowY !== "visible") { found.top = Math.max(found.top, box.top); found.bottom = Math.min(found.bottom, box.bottom); }
      if (look.position === "fixed" || look.position === "sticky" || element.matches("dialog[open], [popover]")) found.layer = element;
    }
    frames.set(element, found);
    return found;
  }

  // A box of text is as high as its font; ascenders, or their absence, decide what overlaps.
  function inked(rect, text, look, turn) {
    ink.font = look.font;
    const font = ink.measureText(text);
    const high = font.fontBoundingBoxAscent + font.fontBoundingBoxDescent;
    if (!high) return rect;
    const over = (font.fontBoundingBoxAscent - font.actualBoundingBoxAscent) / high;
    const under = (font.fontBoundingBoxDescent - font.actualBoundingBoxDescent) / high;
    const box = { ...rect };
    if (turn === 0) { box.top += over * (rect.bottom - rect.top); box.bottom -= under * (rect.bottom - rect.top); }
    if (turn === -90) { box.left += over * (rect.right - rect.left); box.right -= under * (rect.right - rect.left); }
    if (turn === 90) { box.right -= over * (rect.right - rect.left); box.left += under * (rect.right - rect.left); }
    return box;
  }

  // Every line of visible text: its ink, its element, its size on screen.
  function lines() {
    frames.clear();
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
      node.data.trim() ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (!seen(element) || element.closest('.rim[aria-hidden="true"]')) continue;
      const look = getComputedStyle(element);
      const drawn = element instanceof SVGElement;
      if (drawn && look.fill === "none" && look.stroke === "none") continue;
      const matrix = drawn ? element.getScreenCTM() : null;
      const scale = matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1;
      const turn = matrix ? Math.round((Math.atan2(matrix.b, matrix.a) * 180) / Math.PI) : 0;
      const shown = frame(element);
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        if (rect.width < 0.5 || rect.height < 0.5) continue;
        const box = inked(pageBox(rect), node.data, look, turn);
        const cut = {
          left: Math.max(box.left, shown.left), right: Math.min(box.right, shown.right),
          top: Math.max(box.top, shown.top), bottom: Math.min(box.bottom, shown.bottom),
        };
        // Two pixels of a text are not seen: this is how text for screen readers alone is hidden.
        if (cut.right - cut.left <= 2 || cut.bottom - cut.top <= 2) continue;
        found.push({ ...cut, element, text: node.data, layer: shown.layer, size: parseFloat(look.fontSize) * scale, whole: box });
      }
    }
    return found;
  }

  // Sorted by their tops, a line can only overlap those that have not ended: a sweep, not every pair.
  function overlapping(by, seen = lines()) {
    const all = seen.toSorted((a, b) => a.top - b.top);
    const found = [];
    let open = [];
    for (const line of all) {
      open = open.filter((other) => other.bottom - line.top > by);
      for (const other of open) {
        const across = Math.min(line.right, other.right) - Math.max(line.left, other.left);
        const down = Math.min(line.bottom, other.bottom) - Math.max(line.top, other.top);
        if (across > by && down > by && line.layer === other.layer) {
          found.push(`${place(line.element)}: "${short(other.text)}" and "${short(line.text)}" overlap by ${across.toFixed(1)} x ${down.toFixed(1)} px`);
        }
      }
      open.push(line);
    }
    return found;
  }

  function stickingOut(by, seen = lines()) {
    const found = [];
    for (const line of seen) {
      const svg = svgOf(line.element);
      if (!svg) continue;
      const box = pageBox(svg.getBoundingClientRect());
      const out = Math.max(box.left - line.whole.left, line.whole.right - box.right, box.top - line.whole.top, line.whole.bottom - box.bottom);
      if (out > by) found.push(`${place(line.element)}: "${short(line.text)}" sticks out of its svg by ${out.toFixed(1)} px`);
    }
    return found;
  }

  function small(least, seen = lines()) {
    const places = new Map();
    for (const line of seen) {
      if (line.size >= least - 0.01) continue;
      const name = place(line.element);
      const before = places.get(name) ?? { size: Infinity, count: 0, text: "" };
      places.set(name, { count: before.count + 1, size: Math.min(before.size, line.size), text: line.size < before.size ? line.text : before.text });
    }
    return [...places].map(([name, { size, count, text }]) => `${name}: ${count} texts below ${least} px, the smallest ${size.toFixed(2)} px: "${short(text)}"`);
  }

  function text(overlap, out, least) {
    const seen = lines();
    return [overlapping(overlap, seen), stickingOut(out, seen), small(least, seen)];
  }

  function sideways() {
    const root = document.documentElement;
    const found = [];
    const width = Math.max(root.scrollWidth, document.body.scrollWidth);
    if (width > root.clientWidth) {
      const wide = [...document.body.querySelectorAll("*")].filter((element) => {
        const right = element.getBoundingClientRect().right + scrollX;
        return seen(element) && !element.parentElement.closest(".scrolls, svg") && right > root.clientWidth + 0.5;
      });
      const innermost = wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)));
      const named = innermost.slice(0, 5).map((element) => `${describe(element)} to ${(element.getBoundingClientRect().right + scrollX).toFixed(0)} px`);
      found.push(`the page is ${width} px wide in ${root.clientWidth} px: ${named.join("; ")}`);
    }
    for (const element of document.body.querySelectorAll("*")) {
      if (element.scrollWidth <= element.clientWidth + 1 || element instanceof SVGElement || element.matches(".scrolls, textarea, input")) continue;
      const over = getComputedStyle(element).overflowX;
      if ((over === "auto" || over === "scroll") && seen(element)) found.push(`${describe(element)} scrolls sideways without the class "scrolls"`);
    }
    return found;
  }

  function structure() {
    const found = [];
    const count = (selector) => [...document.querySelectorAll(selector)].filter(seen).length;
    for (const [selector, name] of [["main, [role=main]", "main"], ["h1", "h1"]]) {
      if (count(selector) !== 1) found.push(`${count(selector)} visible ${name}, not one`);
    }
    const view = document.querySelector("meta[name=viewport]");
    if (!view?.content.includes("width=device-width")) found.push("no meta viewport with width=device-width");
    let level = 0;
    for (const heading of [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(seen)) {
      const next = Number(heading.tagName[1]);
      if (next > level + 1) found.push(`h${next} "${short(heading.textContent)}" follows ${level ? "h" + level : "no heading"}`);
      level = next;
    }
    const ids = new Map();
    for (const { id } of document.querySelectorAll("[id]")) ids.set(id, (ids.get(id) ?? 0) + 1);
    for (const [id, times] of ids) if (times > 1) found.push(`id "${id}" stands ${times} times`);
    return found;
  }

  // Addresses that a script answers, by their beginnings, have no target of their own.
  function deadLinks(answered) {
    const found = [];
    for (const link of document.querySelectorAll("a")) {
      const to = link.getAttribute("href") ?? link.getAttributeNS("http://www.w3.org/1999/xlink", "href");
      if (!to?.startsWith("#") || to === "#top" || answered.some((start) => to.startsWith(start))) continue;
      let name = to.slice(1);
      try { name = decodeURIComponent(name); } catch { /* looked up as it stands */ }
      if (!name || !document.getElementById(name)) found.push(`${describe(link)} leads to ${to}, which is not there`);
    }
    return found;
  }

  // What could be fetched later (lazily, by a style that is not yet used, or ahead) is a request too.
  function outside() {
    const found = [];
    const own = location.href.split("#")[0];
    const inside = (url) => /^(data|blob|about|javascript):/.test(url) || url.split("#")[0] === own;
    for (const element of document.querySelectorAll("[src], [srcset], [poster], link[href], image, use, object[data]")) {
      if (element.matches("link:not([rel~=stylesheet], [rel~=icon], [rel~=preload], [rel~=modulepreload], [rel~=prefetch], [rel~=preconnect], [rel~=dns-prefetch], [rel~=manifest])")) continue;
      const addresses = ["src", "poster", "href", "data", "xlink:href"].map((name) => element.getAttribute(name)).filter(Boolean);
      addresses.push(...(element.getAttribute("srcset") ?? "").split(/,\s+/).map((one) => one.trim().split(/\s+/)[0]).filter(Boolean));
      for (const address of addresses) {
        const url = new URL(address, document.baseURI).href;
        if (!inside(url)) found.push(`<${element.tagName.toLowerCase()}> refers to ${url.slice(0, 120)}`);
      }
    }
    for (const { textContent } of document.querySelectorAll("style")) {
      for (const [, address] of textContent.matchAll(/(?:url\(|@import)\s*["']?([^"')\s]+)/g)) {
        if (!address.startsWith("#") && address !== "url(" && !inside(new URL(address, document.baseURI).href)) found.push(`a style refers to ${address.slice(0, 120)}`);
      }
    }
    return found;
  }

  function stops() {
    return [...document.querySelectorAll("a[href], button, input, select, textarea, summary, audio[controls], video[controls], [tabindex], [contenteditable]")].filter(
      (element) => element.tabIndex >= 0 && !element.disabled && !element.closest("[inert]") && seen(element) && element.getClientRects().length);
  }

  // What shows the focus: an outline or a shadow, of the element or within it; in a drawing, a stroke too.
  function look(element) {
    return [element, ...[...element.querySelectorAll("*")].slice(0, 30)].map((part) => {
      const { outlineStyle, outlineWidth, outlineColor, boxShadow, stroke, strokeWidth } = getComputedStyle(part);
      const outline = outlineStyle === "none" || outlineWidth === "0px" ? "none" : [outlineStyle, outlineWidth, outlineColor].join(" ");
      return [outline, boxShadow, ...(part instanceof SVGElement ? [stroke, strokeWidth] : [])].join("|");
    }).join("\n");
  }

  const numbers = new Map();
  let last = null;

  // The element that has the focus now, with what is wrong; and of the one that had it before, whether the focus showed.
  function focused() {
    const element = document.activeElement;
    const report = { left: null, at: null, wrong: [] };
    if (last && last.element !== element) {
      if (look(last.element) === last.look) report.left = `${describe(last.element)} shows no focus: neither outline nor shadow changes`;
      last = null;
    }
    if (!element || element === document.body || element === document.documentElement) return report;
    if (!numbers.has(element)) numbers.set(element, numbers.size);
    report.at = numbers.get(element);
    report.end = element.id === "__end";
    if (report.end) return report;
    report.what = describe(element);
    report.element = element;
    last = { element, look: look(element) };
    const rects = [...element.getClientRects()].filter((rect) => rect.width > 1 && rect.height > 1);
    if (!seen(element) || !rects.length) {
      report.wrong.push(`${report.what} has the focus and is not visible`);
      return report;
    }
    const centres = rects.map((rect) => [(rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2]);
    const within = centres.filter(([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight);
    if (!within.length) report.wrong.push(`${report.what} has the focus outside the viewport`);
    const hits = within.map(([x, y]) => document.elementFromPoint(x, y));
    if (hits.length && !hits.some((hit) => hit && (element.contains(hit) || hit.contains(element)))) {
      report.wrong.push(`${report.what} has the focus behind ${describe(hits[0])}`);
    }
    return report;
  }

  // After the last stop, so that a walk sees its end, and one from the end has a start.
  function end() {
    const button = document.createElement("button");
    button.id = "__end";
    button.textContent = "End of the walk";
    document.body.append(button);
  }

  return {
    text, overlapping, stickingOut, small, sideways, structure, deadLinks, outside, focused, stops, end,
    focusOn: (element) => element.focus({ focusVisible: true }),
  };
})();
