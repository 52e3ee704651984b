// Search needs a worker made of a blob, and the logo another host: the page's
// content security policy allows neither.
Redoc.init("openapi.json", { disableSearch: true, hideLoading: true }, document.getElementById("reference"), () =>
  document.body.setAttribute("data-ready", "true"),
);
