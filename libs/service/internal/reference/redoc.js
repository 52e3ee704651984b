// Search would need a worker made of a blob, which the page's content security
// policy does not allow.
Redoc.init("openapi.json", { disableSearch: true, hideLoading: true }, document.getElementById("reference"), () =>
  document.body.setAttribute("data-ready", "true"),
);
