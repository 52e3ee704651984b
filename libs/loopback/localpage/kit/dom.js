// Nodes from data. Nothing here, and nothing in a page, reads data as markup: text reaches the document as text nodes.

function $(id) { return document.getElementById(id); }

// h makes an element: h("td.num", {title: "x"}, "text", node, [nodes]). An "on…" property is a listener.
function h(kind, ...rest) {
  const [tag, ...classes] = kind.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const part of rest.flat(Infinity)) {
    if (part === null || part === undefined || part === false) continue;
    if (part instanceof Node) node.append(part);
    else if (part.constructor === Object) setAll(node, part);
    else node.append(document.createTextNode(String(part)));
  }
  return node;
}

function setAll(node, properties) {
  for (const [name, v] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), v);
    else if (v === true) node.setAttribute(name, "");
    else if (v !== false && v !== null && v !== undefined) node.setAttribute(name, String(v));
  }
}

function fill(node, ...content) {
  node.replaceChildren(...content.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// say tells readers of the screen what changed.
function say(sentence) {
  const live = $("say");
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = sentence; });
}

const TONES = {
  good: ["supported", "passed", "accept_candidate", "ready", "decided", "verified", "evidence_ready", "enabled"],
  bad: ["rejected", "failed", "reject_candidate", "high", "worker_error", "result_manifest_error", "verification_error",
    "normalization_error", "attempt_failed", "admission_blocked", "control_error", "error"],
  warn: ["inconclusive", "escalate", "insufficient_evidence", "medium", "pending", "awaiting_human_decision", "attention"],
  accent: ["proposed", "previewed", "admitted", "dispatched", "candidate_observed", "normalized", "verification_requested",
    "action", "recommendation", "authority"],
};

function badge(word, tone) {
  const text = String(word);
  const kind = tone || Object.keys(TONES).find((t) => TONES[t].includes(text));
  return h(kind ? `span.badge.${kind}` : "span.badge", text.replaceAll("_", " "));
}

function yesNo(flag) { return badge(flag ? "yes" : "no", flag ? "accent" : undefined); }

function digest(text) { return text ? h("span.digest", text) : h("span.muted", "none"); }

function facts(pairs) {
  return h("dl.facts", pairs.map(([name, v]) => [h("dt", name), h("dd", v ?? h("span.muted", "none"))]));
}

// table takes columns as names, "#name" for numbers, and rows of cells; the first cell heads its row.
function table(caption, columns, rows) {
  const numeric = columns.map((c) => c.startsWith("#"));
  const cell = (v, i) => h((i === 0 ? "th" : "td") + (numeric[i] ? ".num" : ""), i === 0 ? { scope: "row" } : null, v ?? h("span.muted", "none"));
  const line = (r) => (r instanceof Node ? r : h("tr", r.map(cell)));
  const head = h("tr", columns.map((c, i) => h(numeric[i] ? "th.num" : "th", { scope: "col" }, c.replace("#", ""))));
  // A table wider than its place scrolls, and what scrolls must be reachable by keyboard.
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": caption },
    h("table", h("caption.hidden-text", caption), h("thead", head), h("tbody", rows.map(line))));
}

// count names a number of things: count(2, "run") is "2 runs".
function count(n, thing) { return `${n} ${thing}${Number(n) === 1 ? "" : thing.endsWith("h") ? "es" : "s"}`; }

// prose shows a sentence whose names stand in backticks.
function prose(text) { return text.split("`").map((part, i) => (i % 2 ? h("code", part) : part)); }

function empty(...content) { return h("p.empty", content); }

// problem shows a fault with all that helps to report it: code, sentence, request id.
function problem(err, ...more) {
  const lead = err.code ? [h("code", err.code), " "] : null;
  return h("div.notice.bad", { role: "alert" }, h("p", lead, err.message),
    err.requestID ? h("p.small", "Request id ", h("code", err.requestID)) : null,
    err.details ? h("p.small", "Details ", h("code", canonical(err.details))) : null, more);
}

async function sha256(data) {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
}

async function digestOf(v) { return "sha256:" + await sha256(canonical(v)); }

// download hands text to the reader as a file.
function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  h("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
