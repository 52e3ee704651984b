// The matrix being edited. Keys that the editor does not know stay as they came, so that an unchanged matrix keeps its digest.

const model = { raw: Object.create(null), gate: "", evidence: "synthetic", quorum: "0.5", candidates: [], verifiers: [] };

function fault(path, sentence) { return Object.assign(new Error(sentence), { code: "invalid_matrix", path }); }

function text(v, path) {
  if (typeof v !== "string" || v === "") throw fault(path, "expected a text");
  return v;
}

function verdictOf(v, path) {
  if (v !== "accept" && v !== "reject") throw fault(path, 'expected "accept" or "reject"');
  return v === "accept";
}

function listOf(v, path) {
  if (!Array.isArray(v) || v.some((e) => e === null || typeof e !== "object" || Array.isArray(e))) throw fault(path, "expected a list of objects");
  return v;
}

// readMatrix takes a document apart far enough to edit it; whether it can be audited is the server's to say.
function readMatrix(doc) {
  if (doc === null || typeof doc !== "object" || Array.isArray(doc) || doc instanceof Num) throw fault("", "a matrix is an object");
  const candidates = listOf(doc.candidates, "/candidates").map((c, i) => ({
    raw: c, id: text(c.id, `/candidates/${i}/id`), good: verdictOf(c.ground_truth, `/candidates/${i}/ground_truth`),
    probe: c.probe === true, kind: typeof c.probe_kind === "string" ? c.probe_kind : "",
  }));
  const verifiers = listOf(doc.verifiers, "/verifiers").map((v, i) => {
    const given = v.verdicts ?? {};
    return { raw: v, id: text(v.id, `/verifiers/${i}/id`), accepts: candidates.map((c) => verdictOf(given[c.id], `/verifiers/${i}/verdicts/${c.id}`)) };
  });
  return {
    raw: doc, candidates, verifiers, gate: typeof doc.gate_id === "string" ? doc.gate_id : "",
    evidence: doc.evidence_class === "observed" ? "observed" : "synthetic",
    quorum: doc.quorum instanceof Num ? doc.quorum.text : "0.5",
  };
}

function copy(raw) { return Object.assign(Object.create(null), raw); }

function word(accepts) { return accepts ? "accept" : "reject"; }

// named refuses ids that are missing or stand twice: verdicts are kept by id, so one of two would be lost.
function named(list, where, what) {
  const seen = new Set();
  list.forEach((e, i) => {
    if (!e.id) throw fault(`/${where}/${i}/id`, `this ${what} needs an id`);
    if (seen.has(e.id)) throw fault(`/${where}/${i}/id`, `another ${what} has the id ${e.id}`);
    seen.add(e.id);
  });
}

// writeMatrix is the document of the model.
function writeMatrix() {
  named(model.candidates, "candidates", "candidate");
  named(model.verifiers, "verifiers", "verifier");
  const doc = copy(model.raw);
  doc.gate_id = model.gate;
  doc.evidence_class = model.evidence;
  if ("quorum" in model.raw || model.quorum !== "0.5") doc.quorum = quorumValue();
  doc.candidates = model.candidates.map((c) => {
    const out = copy(c.raw);
    out.id = c.id;
    out.ground_truth = word(c.good);
    if (c.probe || "probe" in c.raw) out.probe = c.probe;
    delete out.probe_kind;
    if (c.probe && c.kind) out.probe_kind = c.kind;
    return out;
  });
  doc.verifiers = model.verifiers.map((v) => {
    const out = copy(v.raw);
    out.id = v.id;
    out.verdicts = Object.create(null);
    model.candidates.forEach((c, i) => { out.verdicts[c.id] = word(v.accepts[i]); });
    return out;
  });
  return doc;
}

// threshold is the most votes of n that are still a rejection, or null without a quorum. The server reads a quorum in the
// same way: as the fraction with the smallest denominator up to 1000 within 1e-12, or else as the decimal that stands there.
function threshold(text, n) {
  const q = Number(text);
  if (text.trim() === "" || !(q >= 0 && q < 1)) return null;
  for (let d = 1; d <= 1000; d++) {
    const p = Math.round(q * d);
    if (Math.abs(q - p / d) <= 1e-12) return p < d ? Math.floor((p * n) / d) : null;
  }
  const [digits, exponent] = String(q).split("e");
  const [whole, part = ""] = digits.split(".");
  return Number((BigInt(whole + part) * BigInt(n)) / 10n ** BigInt(part.length - Number(exponent ?? 0)));
}

function quorumValue() {
  let v;
  try { v = parseJSON(model.quorum.trim()); } catch { /* told below */ }
  const n = Number(v);
  if (!(v instanceof Num) || n < 0 || n >= 1) throw fault("/quorum", "the quorum is a number from 0 to below 1");
  return v;
}

// unique makes an id that none of the list has.
function unique(list, stem) {
  const taken = new Set(list.map((e) => e.id));
  for (let n = list.length + 1; ; n++) {
    const id = stem + String(n).padStart(2, "0");
    if (!taken.has(id)) return id;
  }
}

function addCandidate(probe) {
  model.candidates.push({ raw: Object.create(null), id: unique(model.candidates, probe ? "p" : "c"), good: !probe, probe, kind: "" });
  for (const v of model.verifiers) v.accepts.push(!probe);
}

function addVerifier() {
  model.verifiers.push({ raw: Object.create(null), id: unique(model.verifiers, "reviewer-"), accepts: model.candidates.map((c) => c.good) });
}

function dropCandidate(i) {
  model.candidates.splice(i, 1);
  for (const v of model.verifiers) v.accepts.splice(i, 1);
}

// saved is the model as it stands, for undo.
function saved() {
  return { ...model, candidates: model.candidates.map((c) => ({ ...c })), verifiers: model.verifiers.map((v) => ({ ...v, accepts: [...v.accepts] })) };
}

// The correlation of two verifiers' errors, as the audit computes it, for the table of pairs.
function phi(a, b) {
  let n = 0, ea = 0, eb = 0, both = 0;
  model.candidates.forEach((c, i) => {
    if (c.probe) return;
    const x = a.accepts[i] !== c.good, y = b.accepts[i] !== c.good;
    n++;
    ea += x;
    eb += y;
    both += x && y;
  });
  const spread = ea * (n - ea) * eb * (n - eb);
  return spread > 0 ? (n * both - ea * eb) / Math.sqrt(spread) : null;
}
