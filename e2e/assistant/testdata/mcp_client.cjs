// The Model Context Protocol's TypeScript SDK against the assistant, over HTTP. Prints one JSON object of what it saw.
// usage: node mcp_client.cjs PACKAGES ADDRESS KEY LINE
const { createRequire } = require("node:module");
const [packages, address, key, line] = process.argv.slice(2);
const need = createRequire(packages + "/package.json");
const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = need("@modelcontextprotocol/sdk/client/streamableHttp.js");

async function main() {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(address + "/mcp"), { requestInit: { headers: { Authorization: "Bearer " + key } } }));
  const { tools } = await client.listTools();
  const call = (name, args) => client.callTool({ name, arguments: args });
  const found = await call("diagnose", { namespace: "shop" });
  const proposed = await call("propose_change", { kubectl: line, reason: "a test" });
  const refused = await call("propose_change", { kubectl: "kubectl get pods" });
  console.log(JSON.stringify({
    tools: Object.fromEntries(tools.map((t) => [t.name, t.annotations?.readOnlyHint ?? false])),
    schemas: tools.every((t) => t.inputSchema && t.outputSchema),
    diagnosis: found.structuredContent, proposal: proposed.structuredContent,
    refused: refused.isError && refused.content[0].text,
  }));
  await client.close();
}

main().catch((e) => { console.error(e); process.exit(1); });
