// Connects one of the real clients to a server: v1 and v2 are the two
// generations of the library, v2-modern is pinned to the newest revision. What
// the server asks the user, answer(params) answers. The command may be the URL of
// a server.
export async function connect(kind, command, args, { capabilities = {}, answer } = {}) {
  const server = { command, args, env: { ...process.env }, stderr: 'inherit' };
  const info = { name: `end-to-end-${kind}`, version: '1.0.0' };
  if (kind === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info, { capabilities });
    if (answer) client.setRequestHandler(ElicitRequestSchema, (request) => answer(request.params));
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    await client.connect(/^http/.test(command) ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport(server));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const negotiation = kind === 'v2-modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
  const client = new Client(info, { capabilities, ...negotiation });
  if (answer) client.setRequestHandler('elicitation/create', (request) => answer(request.params));
  await client.connect(/^http/.test(command) ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport(server));
  return client;
}

export const text = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
