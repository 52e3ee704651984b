// The keyboard: tabs by arrow keys, single-key shortcuts that can be turned off, and a list of them all.

// tabs makes role=tab buttons work as the ARIA pattern says; show is called with the id of the panel.
function tabs(list, show) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const select = (tab, focus) => {
    for (const t of all) {
      const on = t === tab;
      t.setAttribute("aria-selected", String(on));
      t.tabIndex = on ? 0 : -1;
      $(t.getAttribute("aria-controls")).hidden = !on;
    }
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (focus) tab.focus();
    show(tab.getAttribute("aria-controls"));
  };
  list.addEventListener("click", (e) => {
    const tab = e.target.closest('[role="tab"]');
    if (tab) select(tab, true);
  });
  list.addEventListener("keydown", (e) => {
    const i = all.indexOf(document.activeElement);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1 + all.length, Home: 0, End: all.length - 1 }[e.key];
    if (i < 0 || to === undefined) return;
    e.preventDefault();
    select(all[to % all.length], true);
  });
  return (panel, focus) => {
    const tab = all.find((t) => t.getAttribute("aria-controls") === panel);
    if (tab) select(tab, focus);
    return Boolean(tab);
  };
}

// shortcuts binds single keys {key: [sentence, act]} and shows them, with others that are only listed, under "?".
function shortcuts(keys, others) {
  const dialog = $("help"), off = $("keys-off");
  const stored = () => { try { return localStorage.getItem("keys-off") === "yes"; } catch { return false; } };
  off.checked = stored();
  off.addEventListener("change", () => {
    try { localStorage.setItem("keys-off", off.checked ? "yes" : "no"); } catch { /* then it holds for this page */ }
  });
  const open = () => { if (!dialog.open) dialog.showModal(); };
  const all = { ...keys, "?": ["Show this list", open] };
  const rows = [...Object.entries(all).map(([k, [sentence]]) => [k, sentence]), ...others];
  fill($("keys"), h("table", h("caption.hidden-text", "Keys"), h("tbody",
    rows.map(([k, sentence]) => h("tr", h("th", { scope: "row" }, h("kbd", k)), h("td", sentence))))));
  $("help-open").addEventListener("click", open);
  $("help-close").addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (e) => {
    if (off.checked || dialog.open || e.ctrlKey || e.metaKey || e.altKey || document.body.classList.contains("locked")) return;
    if (e.target.closest("input, textarea, select")) return;
    const bound = all[e.key];
    if (!bound) return;
    e.preventDefault();
    bound[1]();
  });
  $("skip").addEventListener("click", (e) => {
    e.preventDefault();
    $("main").focus();
  });
}
