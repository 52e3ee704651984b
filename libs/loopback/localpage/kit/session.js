// The session: the token comes with the first load or from the reader, lives as long as the tab, and never stands in
// the address.

const session = (() => {
  const element = $("boot");
  const boot = JSON.parse(element.textContent);
  element.remove();
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);

  // A browser may refuse storage; then the session lasts until the page is left.
  const memory = new Map();
  const keep = (name, v) => {
    memory.set(name, v);
    try { sessionStorage.setItem(name, v); } catch { /* too large or refused */ }
  };
  const kept = (name) => {
    if (memory.has(name)) return memory.get(name);
    try { return sessionStorage.getItem(name) ?? ""; } catch { return ""; }
  };
  if (boot) {
    keep("token", boot.token);
    keep("document", boot.document);
  }
  return {
    keep,
    kept,
    get token() { return kept("token"); },
    forget() { keep("token", ""); },
  };
})();

// askToken shows the form in place of the views until a token was given; why is shown when one was refused.
function askToken(start, why) {
  document.body.classList.add("locked");
  for (const part of document.querySelectorAll("[data-unlocked]")) part.hidden = true;
  const form = $("token-form"), input = $("token");
  form.hidden = false;
  fill($("token-why"), why ? problem(why, h("p", "Tokens differ from start to start: a page that outlives its server needs the new one.")) : null);
  input.setAttribute("aria-invalid", why ? "true" : "false");
  input.value = "";
  input.focus();
  form.onsubmit = (e) => {
    e.preventDefault();
    const token = input.value.trim();
    if (!/^[A-Za-z0-9._~-]{32,4096}$/.test(token)) {
      input.setAttribute("aria-invalid", "true");
      fill($("token-why"), problem({ message: "A token has 32 to 4096 characters: letters, digits and - . _ ~" }));
      input.focus();
      return;
    }
    session.keep("token", token);
    input.value = "";
    unlock(start);
  };
}

function unlock(start) {
  document.body.classList.remove("locked");
  $("token-form").hidden = true;
  for (const part of document.querySelectorAll("[data-unlocked]")) part.hidden = false;
  start();
}
