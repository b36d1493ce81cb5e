"use strict";
// Papers of a value: a hint on hover or focus, its card on a click. Values of the page: as recomputed or as published.
const kvtier = {};
{
  const papers = JSON.parse(document.getElementById("papers").textContent);
  const root = document.documentElement, hint = document.getElementById("hint"), card = document.getElementById("card");
  const body = document.getElementById("card-body");
  kvtier.papers = papers;

  // Elements are built, never parsed: texts of the ledger are no markup.
  const element = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const slug = (text) => (text.toLowerCase().match(/[a-z0-9]+/g) || []).join("-");
  const badge = (label) => element("span", { class: `badge ${slug(label)}` }, label);
  const reference = (href) => {
    const found = /^#([nc])\/(.+)$/.exec(href);
    const kind = found && { n: "numbers", c: "claims" }[found[1]];
    // Own ones alone: an address may name what every object has.
    return kind && Object.hasOwn(papers[kind], found[2]) ? { kind, name: found[2], record: papers[kind][found[2]] } : null;
  };

  const brief = ({ kind, name, record }) => {
    const told = kind === "numbers" ? record.definition : `${record.place}. ${record.says}.`;
    const more = kind === "numbers" ? [`Rule ${record.rule}, remade by `, element("code", {}, record.command)] : [`Verdict: ${record.verdict}`];
    return [badge(record.label), element("p", {}, told), element("p", {}, ...more)];
  };
  const rows = (list) => element("dl", {}, ...list.filter(([, inside]) => inside).flatMap(([head, inside]) =>
    [element("dt", {}, head), element("dd", {}, ...[inside].flat())]));
  const to = (kind, name, text) => element("a", { href: `#${kind}/${name}` }, text);

  const cardOfNumber = (name, record) => {
    const claims = record.claims.map((claim) => {
      const told = papers.claims[claim];
      const value = told.withdrawn ? element("s", {}, told.printed) : told.printed;
      return element("li", {}, to("c", claim, told.place), ": ", value, ", ", element("strong", { class: `verdict ${slug(told.verdict)}` }, told.verdict));
    });
    return [
      element("p", { class: "name" }, element("code", {}, name)),
      element("h2", { id: "card-title" }, record.text),
      badge(record.label),
      rows([
        ["Interval", record.interval], ["Status", record.status], ["Definition", record.definition], ["Class", papers.labels[record.label]],
        ["Rule", element("code", {}, record.rule)],
        ["Ask for it", element("pre", {}, `kvtier explain ${name}`)], ["Remake it", element("pre", {}, record.command)],
      ]),
      element("h3", {}, claims.length ? "Claims of v6.0 that rest on it" : "No claim of v6.0 rests on it"),
      ...(claims.length ? [element("ul", {}, ...claims)] : []),
    ];
  };
  const cardOfClaim = (name, record) => [
    element("p", { class: "name" }, record.place),
    element("h2", { id: "card-title" }, record.withdrawn ? element("s", {}, record.printed) : record.printed),
    badge(record.label),
    rows([
      ["Says", record.says], ["Status", record.status],
      ["Verdict", [element("strong", { class: `verdict ${slug(record.verdict)}` }, record.verdict), `: ${papers.verdicts[record.verdict]}`]],
      ["Why", record.reason],
      ["Recomputed as", record.keys.flatMap((key, index) => [index ? ", " : "", to("n", key, `${papers.numbers[key].text}`), " (", element("code", {}, key), ")"])],
      ["Claim", element("code", {}, name)],
    ].filter(([, inside]) => inside.length !== 0)),
  ];

  // The address without a card, which is back when the card closes.
  let address = "";
  const ofCard = () => /^#[nc]\//.test(location.hash);
  const open = (href) => {
    const found = reference(href);
    if (!found) return false;
    body.replaceChildren(...(found.kind === "numbers" ? cardOfNumber : cardOfClaim)(found.name, found.record));
    hint.hidden = true;
    // A link inside the card is gone now, and the focus with it.
    if (card.open) card.querySelector(".close").focus();
    else { address = ofCard() ? "" : location.hash; card.showModal(); }
    card.scrollTop = 0;
    history.replaceState(null, "", href);
    return true;
  };
  kvtier.open = (link) => open(link.getAttribute("href") || "");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#n/'],a[href^='#c/']");
    // A window of its own, where the reader asks for one.
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    kvtier.open(link);
  });
  // Beside the card, from the press on: a selection of words may end there.
  const beside = (event) => {
    const { left, right, top, bottom } = card.getBoundingClientRect();
    return event.target === card && (event.clientX < left || event.clientX > right || event.clientY < top || event.clientY > bottom);
  };
  let pressed = false;
  card.addEventListener("pointerdown", (event) => { pressed = beside(event); });
  card.addEventListener("click", (event) => { if (pressed && beside(event)) card.close(); });
  card.addEventListener("close", () => { if (ofCard()) history.replaceState(null, "", address || location.pathname + location.search); });

  const show = (link) => {
    const found = reference(link.getAttribute("href") || "");
    if (!found || card.open) return;
    hint.replaceChildren(...brief(found));
    hint.hidden = false;
    // It is as wide as the room to its right, so it is measured where there is all of it.
    hint.style.left = hint.style.top = "0";
    const at = link.getBoundingClientRect(), size = hint.getBoundingClientRect(), wide = root.clientWidth;
    const below = at.bottom + 8 + size.height <= innerHeight;
    hint.style.left = `${scrollX + Math.max(12, Math.min(at.left, wide - size.width - 12))}px`;
    hint.style.top = `${scrollY + (below ? at.bottom + 8 : Math.max(4, at.top - size.height - 8))}px`;
    link.setAttribute("aria-describedby", "hint");
  };
  const hide = (link) => { hint.hidden = true; if (link) link.removeAttribute("aria-describedby"); };
  for (const [start, end] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(start, (event) => {
      const link = event.target.closest?.(".num");
      // Not where a closing card gives the focus back to what was clicked: there it would stay.
      if (link && (start === "mouseover" || link.matches(":focus-visible"))) show(link);
    });
    document.addEventListener(end, (event) => { const link = event.target.closest?.(".num"); if (link) hide(link); });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", () => { hint.hidden = true; }, { passive: true });

  for (const choice of document.querySelectorAll("input[name=values]")) {
    choice.addEventListener("change", () => { root.dataset.values = choice.value; });
    if (choice.checked) root.dataset.values = choice.value;
  }
  document.querySelector(".theme")?.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("kvtier-theme", root.dataset.theme); } catch {}
  });

  // The part in view, in the contents.
  const links = new Map([...document.querySelectorAll(".contents a[href^='#']")].map((link) => [link.getAttribute("href").slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const name of links.keys()) { const target = document.getElementById(name); if (target) seen.observe(target); }

  // On a narrow screen the contents would fill the first page.
  const contents = document.querySelector(".contents details");
  if (contents && !matchMedia("(min-width:1080px)").matches) contents.open = false;

  // On paper: dark ink, and a word on whose values these are, for the switch is not there.
  const note = element("p", { class: "banner" }, "Values as v6.0 published them, where it has one; not as recomputed here.");
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    if (theme) root.dataset.theme = "light";
    if (root.dataset.values === "published") document.querySelector("main").prepend(note);
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    note.remove();
  });

  const landed = () => {
    if (!ofCard()) { card.close(); return; }
    let href = location.hash;
    try { href = decodeURIComponent(href); } catch {}
    open(href);
  };
  addEventListener("hashchange", landed);
  landed();
}
