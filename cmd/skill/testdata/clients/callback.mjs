// Sets a callback and waits for it in each way that the client has: told by a
// subscription, as a channel event if it says that it takes those, and with the
// result of another tool.
//
//   node callback.mjs v1|v2|v2-modern COMMAND|URL [ARGUMENT ...]
import assert from 'node:assert/strict';
import { connect, text } from './connect.mjs';

const [kind, command, ...args] = process.argv.slice(2);
const modern = kind === 'v2-modern';
const inbox = 'callback://inbox';
const channel = !modern;
const client = await connect(kind, command, args, { capabilities: channel ? { experimental: { 'claude/channel': {} } } : {} });

const heard = [];
let wake = () => {};
const hear = (n) => { heard.push(n); wake(); };
client.fallbackNotificationHandler = async (n) => hear(n);
if (kind === 'v1') {
  const { ResourceUpdatedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
} else {
  client.setNotificationHandler('notifications/resources/updated', hear);
}
async function until(what, cond) {
  const late = setTimeout(() => { console.error('no', what, JSON.stringify(heard)); process.exit(1); }, 60_000);
  for (;;) {
    const found = await cond();
    if (found) { clearTimeout(late); return found; }
    await new Promise((resolve) => { wake = resolve; setTimeout(resolve, 250); });
  }
}
async function ok(name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result).slice(0, 600)}`);
  return result;
}
const has = (method) => () => heard.find((n) => n.method === method && (n.params.uri ?? inbox) === inbox);

const { resources } = await client.listResources();
assert.ok(resources.some((r) => r.uri === inbox), 'the inbox is not listed');

// Without a push, it says so.
const first = await ok('SetCallback', { action: 'list' });
assert.equal(first.structuredContent.delivery.channel, channel ? 'claude/channel' : 'tool_result');
assert.deepEqual(first.structuredContent.callbacks, []);

const subscription = modern ? await client.listen({ resourceSubscriptions: [inbox] }) : await client.subscribeResource({ uri: inbox });
if (modern) assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [inbox]);

const message = `look at the build of ${kind}: "ünïcode" <b>`;
const set = await ok('SetCallback', { action: 'set', message, delay_seconds: 1, repeat_count: 1 });
console.log(text(set));
assert.equal(set.structuredContent.delivery.channel, channel ? 'claude/channel' : 'resource_updated');
assert.equal(set.structuredContent.callbacks[0].remaining, 1);

await until('word of the inbox', has('notifications/resources/updated'));
if (channel) {
  const event = await until('channel event', has('notifications/claude/channel'));
  assert.deepEqual(event.params, { content: message, meta: { callback_id: '0', fire: '1' } });
}
const told = heard.filter((n) => n.params?.uri === inbox || n.method.includes('channel'));
assert.equal(told.length, channel ? 2 : 1, JSON.stringify(heard));

const read = JSON.parse((await client.readResource({ uri: inbox })).contents[0].text);
assert.equal(read.fired.length, 1);
assert.equal(read.fired[0].message, message);
assert.equal(read.fired[0].count, 1);

// It comes with the result of any tool, behind what that says, and once.
const blocks = (result) => result.content.filter((c) => c.annotations?.audience?.[0] === 'assistant' && c.text.includes('[1 callback has fired]'));
const other = await ok('TaskManager', { action: 'list' });
assert.equal(blocks(other).length, 1, JSON.stringify(other));
assert.match(blocks(other)[0].text, /Callback 0, fire 1, at [^ ]+ \(announced before\): look at the build/);
assert.equal(other.content.at(-1), blocks(other)[0]);
assert.deepEqual(other.structuredContent.tasks, []);
assert.equal(blocks(await ok('TaskManager', { action: 'list' })).length, 0, 'twice');

await until('empty list', async () => (await ok('SetCallback', { action: 'list' })).structuredContent.callbacks.length === 0);

// Full slots.
for (let i = 0; i < 8; i++) await ok('SetCallback', { action: 'set', message: `m${i}`, delay_seconds: 3600 });
const ninth = await client.callTool({ name: 'SetCallback', arguments: { action: 'set', message: 'm', delay_seconds: 3600 } });
assert.ok(ninth.isError);
assert.match(text(ninth), /all callback slots full \(max 8\)/);
assert.equal((await ok('SetCallback', { action: 'cancel', callback_id: 3 })).structuredContent.callbacks.length, 7);
assert.deepEqual((await ok('SetCallback', { action: 'cancel' })).structuredContent.cancelled, [0, 1, 2, 4, 5, 6, 7]);

if (modern) await subscription.close();
await client.close();
console.log('ok');
