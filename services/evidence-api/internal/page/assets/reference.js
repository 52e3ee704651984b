// Local API: what the running build says about itself in its OpenAPI document, with a form to try each read.

async function showReference() {
  const place = $("reference-list");
  if (place.childElementCount && !place.querySelector(".notice")) return;
  await shown(place, async () => {
    const { value: doc } = await call("/openapi.json");
    const operations = Object.entries(doc.paths).flatMap(([path, methods]) =>
      Object.entries(methods).filter(([m]) => ["get", "post", "put", "patch", "delete"].includes(m)).map(([method, op]) => ({ path, method, op, shared: methods.parameters ?? [] })));
    fill(place,
      h("div.panel", h("div.row.between", h("h3", doc.info.title), h("span.muted", `OpenAPI ${doc.openapi}, version ${doc.info.version}`)),
        doc.info.description ? h("p", prose(doc.info.description)) : null,
        h("p", "Each request carries the token in the header ", h("code", "X-SVC-UI-Token"), ". The server listens on this machine only."),
        h("p", h("button", { type: "button", onclick: () => download("openapi.json", canonical(doc, "  ") + "\n") }, "Save the document"))),
      h("div.operations", operations.map((o) => operation(doc, o))));
  });
}

// resolve follows a reference inside the document, a few steps at most.
function resolve(doc, v) {
  for (let steps = 0; v?.$ref?.startsWith("#/") && steps < 8; steps++) {
    v = v.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], doc);
  }
  return v ?? {};
}

function operation(doc, { path, method, op, shared }) {
  const parameters = [...shared, ...(op.parameters ?? [])].map((p) => resolve(doc, p));
  const responses = Object.entries(op.responses ?? {}).map(([status, r]) => [status, resolve(doc, r)]);
  const streams = responses.some(([, r]) => r.content?.["text/event-stream"]);
  return h("details.operation",
    h("summary", h("span.verb", method.toUpperCase()), h("code", path), h("span.muted", prose(op.summary ?? op.operationId))),
    op.description ? h("p", prose(op.description)) : null,
    parameters.length ? table(`Parameters of ${op.operationId}`, ["Parameter", "In", "Required", "Meaning"],
      parameters.map((p) => [h("code", p.name), p.in, yesNo(p.required), [prose(p.description ?? ""), bounds(resolve(doc, p.schema))]])) : null,
    table(`Answers of ${op.operationId}`, ["Status", "Type", "Meaning"],
      responses.map(([status, r]) => [status, Object.keys(r.content ?? {})[0] ?? "", prose(r.description ?? "")])),
    method === "get" && path.startsWith("/api/v1/") && !streams ? attempt(path, op, parameters) : null);
}

function bounds(s) {
  const parts = [s.minimum !== undefined ? `at least ${s.minimum}` : "", s.maximum !== undefined ? `at most ${s.maximum}` : "",
    s.default !== undefined ? `else ${s.default}` : "", Array.isArray(s.enum) ? `one of ${s.enum.join(", ")}` : ""].filter(Boolean);
  return parts.length ? h("span.muted", ` ${parts.join(", ")}`) : null;
}

// attempt is a form that sends this read and shows the answer as it came.
function attempt(path, op, parameters) {
  const result = h("div", { role: "status" });
  const fields = parameters.filter((p) => p.in === "path" || p.in === "query").map((p) => {
    const id = `try-${op.operationId}-${p.name}`;
    return { p, input: h("input", { id, required: p.in === "path", autocomplete: "off", spellcheck: "false" }), label: h("label", { for: id }, p.name) };
  });
  const run = async (e) => {
    e.preventDefault();
    let target = path.slice("/api/v1".length);
    const q = {};
    for (const { p, input } of fields) {
      if (p.in === "path") target = target.replace(`{${p.name}}`, () => idPath(input.value));
      else q[p.name] = input.value;
    }
    await shown(result, async () => {
      const { value, requestID, digest: found } = await call(target + query(q));
      fill(result, facts([["Request id", h("code", requestID)], ["Digest", [digest(found), " ", badge("verified")]]]),
        h("pre", { tabindex: "0", role: "region", "aria-label": `Answer of ${op.operationId}` }, canonical(value, "  ")));
    });
  };
  return h("form.stack", { onsubmit: run },
    h("div.row", fields.map(({ input, label }) => h("div.field", label, input)), h("button", { type: "submit" }, "Send")), result);
}
