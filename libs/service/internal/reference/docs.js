SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null, // the default would send the description to another host
  onComplete: () => document.body.setAttribute("data-ready", "true"),
});
