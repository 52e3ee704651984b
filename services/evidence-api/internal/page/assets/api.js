// Talking to the API. Every answer is read strictly, hashed here and compared with the digest it came with; what does not
// agree is never shown.

class Fault extends Error {
  constructor(code, message, more) {
    super(message);
    Object.assign(this, { code }, more);
  }
}

// answers is what this page received, the newest first, for the Verification view.
const answers = { good: 0, bad: 0, rows: [], changed() {} };

function note(row) {
  answers[row.ok ? "good" : "bad"]++;
  answers.rows.unshift(row);
  answers.rows.length = Math.min(answers.rows.length, 50);
  answers.changed();
}

const MIB = 1 << 20;

async function send(path, options) {
  try {
    return await fetch("/api/v1" + path, {
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", ...options,
      headers: { Accept: "application/json", "X-SVC-UI-Token": session.token, ...options.headers },
    });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Fault("unreachable", "The server does not answer. See whether svc control-tower still runs, then refresh.");
  }
}

async function textOf(answer) {
  try {
    const bytes = await answer.arrayBuffer();
    if (bytes.byteLength > 64 * MIB) throw new Fault("protocol", "The answer is larger than 64 MiB.");
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (err) {
    if (err instanceof Fault) throw err;
    if (err.name === "AbortError") throw err;
    throw new Fault("protocol", "The answer broke off or is not UTF-8.");
  }
}

// call reads one document: {value, requestID, digest}. It throws a Fault for everything else.
async function call(path, options = {}) {
  const answer = await send(path, options);
  return read(path, answer);
}

async function read(path, answer) {
  const requestID = answer.headers.get("X-Request-ID");
  const at = { requestID, status: answer.status };
  const text = await textOf(answer);
  let value;
  try {
    value = parseJSON(text);
  } catch (err) {
    throw new Fault("protocol", `The answer (status ${answer.status}) is not the JSON this API sends: ${err.message}.`, at);
  }
  const claimed = answer.headers.get("X-SVC-Content-Digest") ?? "";
  const found = await digestOf(value);
  const ok = claimed === found && answer.headers.get("ETag") === `"${found.slice(7)}"`;
  note({ path, status: answer.status, claimed, found, ok, requestID });
  if (!ok) {
    throw new Fault("integrity", "The answer's digest does not agree with its content, so it is not shown.", { ...at, details: { claimed, found } });
  }
  if (value?.ok === false && value.error) {
    const { code, message, details } = value.error;
    throw new Fault(code, message, { ...at, details, retryable: value.error.retryable });
  }
  if (!answer.ok) throw new Fault("protocol", `The answer has status ${answer.status} without an error document.`, at);
  return { value, requestID, digest: found, text };
}

// claims checks a digest that stands inside a document.
async function claims(what, claimed, v) {
  const found = await digestOf(v);
  const ok = claimed === found;
  note({ path: what, claimed, found, ok });
  if (!ok) throw new Fault("integrity", `The ${what} does not agree with its content, so it is not shown.`, { details: { claimed, found } });
  return found;
}

// An id may hold "/" and ":" as they are; a trailing word that names a sub-resource must not look like one.
function idPath(id) {
  const path = encodeURIComponent(id).replaceAll("%2F", "/").replaceAll("%3A", ":");
  return path.replace(/\/(attempts|evidence|decisions)$/, "%2F$1");
}

function query(values) {
  const q = new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v !== null && v !== undefined));
  return q.size ? "?" + q.toString().replaceAll("+", "%20") : "";
}

// shown runs a task whose fault belongs into a place of the page; a refused token asks for another.
async function shown(place, task) {
  try {
    return await task();
  } catch (err) {
    if (err.name === "AbortError") return undefined;
    if (err.code === "invalid_session_token") lock(err);
    else if (err.code === "product_spine_store_not_configured") {
      fill(place, empty("No store was given. Start ", h("code", "svc control-tower --product-spine-store PATH"), " to read runs and events here."));
    } else {
      fill(place, problem(err));
    }
    if (!(err instanceof Fault)) console.error(err);
    return undefined;
  }
}
