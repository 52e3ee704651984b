// Verification: the digests of what came, and of the event log as a whole.

const MOST_EVENTS = 20_000;

function startVerify() {
  answers.changed = () => {
    $("integrity").className = `badge ${answers.bad ? "bad" : "good"}`;
    $("integrity").textContent = answers.bad ? `${answers.bad} digests disagree` : `${answers.good} digests verified`;
    if (views.current === "verification") showVerification();
  };
  $("verify-events").addEventListener("click", verifyLog);
  $("any-json").addEventListener("input", digestAny);
  digestAny();
}

function showVerification() {
  const rows = answers.rows.map((r) => [h("code", r.path), r.ok ? badge("agrees", "good") : badge("disagrees", "bad"), digest(r.claimed), r.ok ? "the same" : digest(r.found)]);
  fill($("verify-answers"),
    h("div.row.between", h("h3", "What came, and what it hashes to"), h("span", badge(`${answers.good} agree`, "good"), " ", badge(`${answers.bad} disagree`, answers.bad ? "bad" : undefined))),
    rows.length ? table("The latest digests", ["What", "Verdict", "Digest it came with", "Digest computed here"], rows) : empty("Nothing was read yet."),
    answers.good + answers.bad > rows.length ? h("p.muted.small", `The latest ${rows.length} are shown.`) : null);
}

async function digestAny() {
  const text = $("any-json").value, place = $("any-result");
  if (!text.trim()) { fill(place, h("p.muted", "Paste JSON to see its canonical form and digest.")); return; }
  try {
    const form = canonical(parseJSON(text));
    const found = "sha256:" + await sha256(form);
    if ($("any-json").value !== text) return;
    fill(place, facts([["Digest", digest(found)], ["Canonical form", h("code.digest", form.length > 4000 ? form.slice(0, 4000) + "…" : form)], ["Size", `${new TextEncoder().encode(form).length} bytes`]]));
  } catch (err) {
    fill(place, problem({ code: err.reason, message: err.message }));
  }
}

// The log's tree, as RFC 9162 hashes it.

function bytesOf(hex) { return Uint8Array.from(hex.match(/../g) ?? [], (b) => parseInt(b, 16)); }

function leafHash(e) {
  const body = new TextEncoder().encode(canonical(e));
  const all = new Uint8Array(body.length + 1);
  all.set(body, 1);
  return sha256(all);
}

function nodeHash(left, right) {
  const all = new Uint8Array(65);
  all[0] = 1;
  all.set(bytesOf(left), 1);
  all.set(bytesOf(right), 33);
  return sha256(all);
}

// rootOf hashes leaves pairwise upwards; an odd one out rises as it is, which gives the tree of RFC 9162.
async function rootOf(leaves) {
  if (!leaves.length) return sha256("");
  let level = leaves;
  while (level.length > 1) {
    const next = [];
    for (let i = 0; i < level.length; i += 2) next.push(i + 1 < level.length ? await nodeHash(level[i], level[i + 1]) : level[i]);
    level = next;
  }
  return level[0];
}

// fold climbs from a leaf to the root along an inclusion path (RFC 9162, 2.1.3.2).
async function fold(leaf, index, size, path) {
  let at = index, last = size - 1, hash = leaf;
  for (const other of path) {
    if (last === 0) return "";
    if (at % 2 === 1 || at === last) {
      hash = await nodeHash(other, hash);
      while (at % 2 === 0 && at !== 0) { at = Math.floor(at / 2); last = Math.floor(last / 2); }
    } else {
      hash = await nodeHash(hash, other);
    }
    at = Math.floor(at / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 ? hash : "";
}

async function inclusion(e) {
  const { value: p } = await call(`/events/${encodeURIComponent(e.event_id)}/proof`);
  const leaf = await leafHash(e);
  const root = await fold(leaf, Number(e.sequence) - 1, Number(p.tree_size), p.inclusion_path);
  const ok = p.event_id === e.event_id && p.leaf_hash === leaf && root === p.root_hash;
  note({ path: `inclusion of ${e.event_id}`, claimed: p.root_hash, found: root, ok });
  return ok
    ? h("div.notice.good", h("p", `The log of ${count(p.tree_size, "event")} holds this event: a path of ${count(p.inclusion_path.length, "hash")} leads from it to the root.`), h("p", h("span.digest", root)))
    : problem({ code: "integrity", message: "The proof does not lead from this event to the log's root." });
}

async function verifyLog() {
  const place = $("verify-events-result"), button = $("verify-events");
  // A disabled button would lose the focus; this one only says that it is busy.
  if (button.ariaDisabled === "true") return;
  button.ariaDisabled = "true";
  fill(place, h("p", "Reading the log…"));
  await shown(place, async () => fill(place, await logVerdict((n, of) => fill(place, h("p", `${n} of ${of} events read`)))));
  button.ariaDisabled = null;
}

async function logVerdict(progress) {
  const { value: { checkpoint } } = await call("/events/checkpoint");
  const size = Number(checkpoint.tree_size);
  if (size > MOST_EVENTS) {
    return h("div.notice.warn", `The log holds ${size} events; a page reads at most ${MOST_EVENTS}. `, h("code", "svc verify STORE"), " checks all of it.");
  }
  const leaves = [];
  for (let cursor = ""; leaves.length < size;) {
    const { value } = await call("/events" + query({ limit: 200, cursor }));
    for (const e of value.items) {
      if (leaves.length === size) break; // written since the checkpoint was read
      await checkEvent(e);
      if (Number(e.sequence) !== leaves.length + 1) throw new Fault("integrity", `After event ${leaves.length} comes ${e.sequence}: the log has a gap.`);
      leaves.push(await leafHash(e));
    }
    progress(leaves.length, size);
    if (!value.next_cursor) break;
    cursor = value.next_cursor;
  }
  return verdict(checkpoint, leaves, await rootOf(leaves));
}

async function verdict(checkpoint, leaves, root) {
  const size = Number(checkpoint.tree_size);
  const whole = leaves.length === size && root === checkpoint.root_hash;
  note({ path: "root of the event log", claimed: checkpoint.root_hash, found: root, ok: whole });
  const rows = [
    ["Events", String(leaves.length), badge(leaves.length === size ? "all read" : "some are missing", leaves.length === size ? "good" : "bad")],
    ["Payload digests", String(leaves.length), badge("agree", "good")],
    ["Root of the tree", h("span.digest", root), badge(root === checkpoint.root_hash ? "agrees" : "disagrees", root === checkpoint.root_hash ? "good" : "bad")],
  ];
  let consistent = true;
  const before = session.kept("checkpoint").split(" ");
  if (before.length === 3 && before[0] === checkpoint.origin) {
    const then = Number(before[1]);
    consistent = then <= leaves.length && await rootOf(leaves.slice(0, then)) === before[2];
    rows.push(["As seen before", count(then, "event"), badge(consistent ? "still the same" : "the past was altered", consistent ? "good" : "bad")]);
  }
  if (whole && consistent) session.keep("checkpoint", `${checkpoint.origin} ${size} ${root}`);
  say(whole && consistent ? "The event log is whole" : "The event log is not what it should be");
  return [
    h(`div.notice.${whole && consistent ? "good" : "bad"}`, h("strong", whole && consistent ? "The log is whole and agrees with its checkpoint." : "The log is not what its checkpoint says.")),
    table("What was checked", ["What", "Found", "Verdict"], rows),
    h("p.muted.small", "This cannot show a loss from before the checkpoints that somebody kept. ", h("code", "svc verify"), " checks signatures, rows and runs as well."),
  ];
}
