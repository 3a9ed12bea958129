// Holds the same session with one of the official clients, in one era, and
// prints a line for each step: "ok STEP" or "not ok STEP: why".
//
//   node clients.mjs v1|v2-legacy|v2-auto|v2-modern URL|BINARY
import assert from 'node:assert/strict';

const [kind, target] = process.argv.slice(2);
const v1 = kind === 'v1';
const overHTTP = target.startsWith('http://');
const v1path = '@modelcontextprotocol/sdk/client/';

async function transport() {
  if (overHTTP) {
    const { StreamableHTTPClientTransport } = await import(v1 ? `${v1path}streamableHttp.js` : '@modelcontextprotocol/client');
    return new StreamableHTTPClientTransport(new URL(target));
  }
  const { StdioClientTransport } = await import(v1 ? `${v1path}stdio.js` : '@modelcontextprotocol/client/stdio');
  return new StdioClientTransport({ command: target, args: ['serve'], env: { ...process.env }, stderr: 'inherit' });
}

const modes = { 'v2-legacy': 'legacy', 'v2-auto': 'auto', 'v2-modern': { pin: '2026-07-28' } };

async function connect() {
  const { Client } = await import(v1 ? `${v1path}index.js` : '@modelcontextprotocol/client');
  const options = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } };
  if (!v1) options.versionNegotiation = { mode: modes[kind] };
  const client = new Client({ name: `conformance-${kind}`, version: '1.0.0' }, options);
  const asked = [];
  const answers = {
    'elicitation/create': { action: 'accept', content: { name: 'Ann', color: 'blue' } },
    'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none' },
    'roots/list': { roots: [] },
  };
  const handle = async (method, params) => {
    asked.push(method);
    const properties = Object.keys(params?.requestedSchema?.properties ?? {});
    if (method !== 'elicitation/create') return answers[method];
    const content = Object.fromEntries(Object.entries(answers[method].content).filter(([name]) => properties.includes(name)));
    return { action: 'accept', content };
  };
  if (v1) {
    const types = await import('@modelcontextprotocol/sdk/types.js');
    for (const [method, schema] of [['elicitation/create', types.ElicitRequestSchema], ['sampling/createMessage', types.CreateMessageRequestSchema], ['roots/list', types.ListRootsRequestSchema]]) {
      client.setRequestHandler(schema, (request) => handle(method, request.params));
    }
  } else {
    for (const method of Object.keys(answers)) client.setRequestHandler(method, (request) => handle(method, request.params));
  }
  await client.connect(await transport());
  return { client, asked };
}

const text = (result) => result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
const call = (client, name, args = {}, options = undefined) =>
  v1 ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);

const { client, asked } = await connect();
const steps = {
  'tools/list': async () => {
    const { tools } = await client.listTools();
    const schema = tools.find((t) => t.name === 'json_schema_2020_12_tool').inputSchema;
    assert.equal(schema.$defs.address.$anchor, 'addressDef');
  },
  'a text': async () => assert.equal(text(await call(client, 'greet', { name: 'Ann' })), 'Hello, Ann!'),
  'an image and a resource': async () => {
    const types = (await call(client, 'test_multiple_content_types')).content.map((c) => c.type);
    assert.deepEqual(types, ['text', 'image', 'resource']);
  },
  'a failure': async () => assert.equal((await call(client, 'test_error_handling')).isError, true),
  'wrong arguments': async () => assert.equal((await call(client, 'test_sampling', { promt: 'x' })).isError, true),
  progress: async () => {
    const seen = [];
    await call(client, 'test_tool_with_progress', {}, { onprogress: (p) => seen.push(p.progress) });
    assert.deepEqual(seen, [0, 50, 100]);
  },
  'one question': async () => {
    assert.equal(text(await call(client, 'test_input_required_result_elicitation')), 'Hello, Ann!');
    assert.ok(asked.includes('elicitation/create'));
  },
  'two questions, one after the other': async () =>
    assert.equal(text(await call(client, 'test_input_required_result_multi_round')), 'Multi-round complete: Ann likes blue'),
  'a question to the model': async () =>
    assert.equal(text(await call(client, 'test_input_required_result_sampling')), 'Sampling response: Paris'),
  resources: async () => {
    const { contents } = await client.readResource({ uri: 'test://template/7/data' });
    assert.equal(JSON.parse(contents[0].text).id, '7');
  },
  prompts: async () => {
    const { messages } = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } });
    assert.match(messages[0].content.text, /arg1='one', arg2='two'/);
  },
  completion: async () => {
    const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } });
    assert.deepEqual(completion.values, ['paris', 'park', 'party']);
  },
};
let failed = false;
for (const [step, run] of Object.entries(steps)) {
  try {
    await run();
    console.log(`ok ${step}`);
  } catch (err) {
    failed = true;
    console.log(`not ok ${step}: ${String(err?.message ?? err).replaceAll('\n', ' ')}`);
  }
}
await client.close();
process.exit(failed ? 1 : 0);
