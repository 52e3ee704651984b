// The event stream: frames held to the contract, one connection at a time, resumed by sequence.

const ENVELOPE = ["attempt_id", "authority_class", "event_id", "event_type", "evidence_reference", "kind", "occurred_at", "payload",
  "payload_digest", "principal", "project_id", "run_id", "schema_version", "sequence", "source_revision", "work_unit_id"];
const END = /^stream-ended reason=(max-duration|shutdown|store-error)$/;
const SILENCE = 40_000; // a quiet stream says keepalive every 15 s
const FIRST_WAIT = 3_000, LAST_WAIT = 30_000;

function broken(sentence) { return new Fault("protocol", `The event stream breaks its contract: ${sentence}.`); }

// checkEvent holds one envelope to the contract.
async function checkEvent(e) {
  if (!e || Object.keys(e).sort(byCodePoint).join() !== ENVELOPE.join()) throw broken("an event has other fields than its kind");
  if (e.kind !== "svc-event" || e.schema_version !== "0.1") throw broken("an event of another kind or version");
  if (e.event_id !== "evt-" + String(e.sequence).padStart(12, "0")) throw broken("an event's id is not its sequence");
  await claims(`payload digest of ${e.event_id}`, e.payload_digest, e.payload);
  return e;
}

// frame reads one block; it gives an event, an end reason, or nothing.
async function frame(block, first) {
  if (first) {
    if (!/^retry: [0-9]+$/.test(block)) throw broken("it does not open with its retry time");
    return {};
  }
  if (block === ": keepalive") return {};
  if (block.startsWith(": ")) {
    const end = END.exec(block.slice(2));
    if (!end) throw broken("an unknown comment");
    return { end: end[1] };
  }
  const lines = /^id: ([0-9]+)\nevent: ([^\n]+)\ndata: ([^\n]+)$/.exec(block);
  if (!lines) throw broken("a frame is not id, event and data");
  const event = await checkEvent(parseJSON(lines[3]));
  if (String(event.sequence) !== lines[1] || event.event_type !== lines[2]) throw broken("a frame and its event disagree");
  return { event };
}

// pause waits, at most until the signal.
function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

// connect holds one connection until it ends, and gives the server's reason.
async function connect(filter, after, signal, heard) {
  const silence = new AbortController();
  let timer;
  const alive = () => { clearTimeout(timer); timer = setTimeout(() => silence.abort(), SILENCE); };
  const either = AbortSignal.any([signal, silence.signal]);
  alive();
  try {
    const answer = await send("/events/stream" + query(filter), { headers: { Accept: "text/event-stream", "Last-Event-ID": String(after) }, signal: either });
    if (!answer.ok) await read("/events/stream", answer);
    if (!(answer.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) throw broken("it is no event stream");
    heard.open();
    const reader = answer.body.pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader();
    let rest = "", first = true;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Fault("cut", "The stream ended without saying why.");
      alive();
      rest += value;
      for (let cut = rest.indexOf("\n\n"); cut >= 0; cut = rest.indexOf("\n\n")) {
        const got = await frame(rest.slice(0, cut), first);
        first = false;
        rest = rest.slice(cut + 2);
        if (got.event) heard.event(got.event);
        if (got.end) return got.end;
      }
      if (rest.length > MIB) throw broken("a frame over 1 MiB");
    }
  } catch (err) {
    if (signal.aborted) throw Object.assign(new Error("paused"), { name: "AbortError" });
    if (silence.signal.aborted) throw new Fault("cut", "Nothing came for 40 seconds.");
    if (err instanceof Fault || err instanceof JSONError) throw err;
    throw new Fault("cut", "The connection broke.");
  } finally {
    clearTimeout(timer);
    silence.abort(); // frees the server's stream slot whichever way this ended
  }
}

// follow keeps a stream going from a sequence on until the signal. Faults that waiting cannot mend end it.
async function follow(filter, after, signal, heard) {
  let last = after, wait = FIRST_WAIT;
  const seen = {
    open: () => { wait = FIRST_WAIT; heard.state("live"); },
    event: (e) => {
      const n = Number(e.sequence);
      if (n <= last) return; // delivered before: at least once is what a stream promises
      last = n;
      heard.event(e);
    },
  };
  while (!signal.aborted) {
    heard.state("connecting");
    try {
      const reason = await connect(filter, last, signal, seen);
      if (reason === "max-duration") continue;
      heard.state("waiting", { message: `The server ended the stream: ${reason}.` });
    } catch (err) {
      if (err.name === "AbortError") return;
      const passing = err.retryable || ["cut", "unreachable", "store_error"].includes(err.code);
      if (!passing) throw err;
      heard.state("waiting", err);
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, LAST_WAIT);
  }
}
