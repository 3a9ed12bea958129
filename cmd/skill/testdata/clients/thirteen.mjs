// Uses all thirteen tools as an agent would, each on real input, and writes
// down what was said: one line of JSON for each call.
//
//   node thirteen.mjs v1|v2-modern WORKSPACE SITE SKILL
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, text } from './connect.mjs';

const [kind, work, site, command] = process.argv.slice(2);
const modern = kind === 'v2-modern';

// The user, who answers what a form asks for.
const asked = [];
let user = () => ({ action: 'cancel' });
const client = await connect(kind, command, ['serve', '--workspace', work], {
  capabilities: { elicitation: { form: {} } },
  answer: (params) => { asked.push(params); return user(params); },
});

let came = false; // the callback, with the result of a call
async function call(name, args, options) {
  const params = { name, arguments: args };
  const all = { timeout: 120_000, ...options };
  const result = kind === 'v1' ? await client.callTool(params, undefined, all) : await client.callTool(params, all);
  came ||= args.action !== 'set' && text(result).includes('look at the build');
  console.log(JSON.stringify({ name, arguments: args, text: text(result) }));
  return result;
}
async function ok(name, args, options) {
  const result = await call(name, args, options);
  assert.ok(!result.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(result).slice(0, 2000)}`);
  assert.ok(result.structuredContent, `${name} has no structured content`); // which the client has checked
  return result;
}
async function fails(name, args) {
  const result = await call(name, args);
  assert.ok(result.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(result).slice(0, 2000)}`);
  return result;
}
async function until(what, seen) {
  for (let i = 0; i < 600; i++) {
    const found = await seen();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return assert.fail(`${what}: not within a minute`);
}

const { tools } = await client.listTools();
const names = tools.map((t) => t.name).filter((n) => n !== 'hello-go.greet').sort();
assert.deepEqual(names, ['AskUserQuestion', 'BackgroundBash', 'Bash', 'InvokeSkill', 'KillBgTask', 'ListBgTasks', 'PlanMode',
  'ReadBgOutput', 'ReadDocs', 'ReadImage', 'SetCallback', 'TaskManager', 'WebSearch']);
for (const t of tools.filter((t) => names.includes(t.name))) assert.ok(t.outputSchema && t.annotations && t.title, t.name);

// A callback is set first: it fires while the rest goes on.
const set = await ok('SetCallback', { action: 'set', message: 'look at the build', delay_seconds: 1, repeat_count: 1 });
assert.equal(set.structuredContent.callbacks.length, 1);

// Research: a search, then a page that only a browser can read.
const found = await ok('WebSearch', { query: 'cage for tools' });
assert.ok(found.structuredContent.results.length > 0, text(found));
assert.equal(found.structuredContent.engines.length, 11, text(found));
const page = await ok('ReadDocs', { url: `${site}/guide`, format: 'markdown' });
assert.equal(page.structuredContent.rendered, true, text(page));
assert.match(text(page), /Section 30/);

// A list of what is to be done.
await ok('TaskManager', { action: 'create', text: 'Write the guide' });
await ok('TaskManager', { action: 'add', text: 'outline' });
const list = await ok('TaskManager', { action: 'complete', step_id: 1 });
assert.deepEqual(list.structuredContent.tasks[0].steps.map((s) => s.status), ['done']);

// A question with options, which the user answers in the client's form.
user = () => ({ action: 'accept', content: { q1: 'Markdown' } });
const answer = await ok('AskUserQuestion', {
  questions_json: JSON.stringify([{ question: 'Which format shall the guide have?', header: 'Format', options: [{ label: 'Markdown', description: 'plain text' }, { label: 'HTML' }] }]),
});
assert.deepEqual(answer.structuredContent.answers[0].selected, ['Markdown']);
assert.equal(answer.structuredContent.channel, modern ? 'mrtr' : 'elicitation');
assert.equal(asked.length, 1);

// While there is a plan, nothing is written but the plan itself.
const plan = await ok('PlanMode', { action: 'enter', goal: 'Write the guide' });
const file = plan.structuredContent.plan_file;
await fails('Bash', { command: 'echo text > guide.md' });
assert.ok(!existsSync(join(work, 'guide.md')), 'a plan did not keep Bash from writing');
await fails('Bash', { command: `timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/${new URL(site).port}'` });
const planPath = file.startsWith('/') ? file : join(work, file);
await ok('Bash', { command: `printf -- '- [ ] write guide.md\\n' >> '${planPath}'` });
user = () => ({ action: 'accept', content: { decision: 'reject', feedback: 'add a title' } });
const rejected = await ok('PlanMode', { action: 'exit' });
assert.equal(rejected.structuredContent.mode, 'plan', text(rejected));
await fails('Bash', { command: 'echo text > guide.md' });
user = () => ({ action: 'accept', content: { decision: 'approve' } });
const approved = await ok('PlanMode', { action: 'exit' });
assert.notEqual(approved.structuredContent.mode, 'plan', text(approved));
await ok('Bash', { command: 'echo text > guide.md && cat guide.md' });
assert.ok(existsSync(join(work, 'guide.md')));

// Work in the background.
const job = await ok('BackgroundBash', { command: 'echo begun; sleep 300' });
const id = job.structuredContent.task_id;
await until('the output of the job', async () => text(await ok('ReadBgOutput', { task_id: id, wait_ms: 1000 })).includes('begun'));
const jobs = await ok('ListBgTasks', {});
assert.ok(jobs.structuredContent.tasks.some((t) => t.task_id === id && t.status === 'running'), text(jobs));
assert.equal((await ok('KillBgTask', { task_id: id })).structuredContent.status, 'killed');
const log = await client.readResource({ uri: `skill-output://${id}` });
assert.match(log.contents[0].text, /begun/);

// A picture, and a skill.
const picture = await ok('ReadImage', { file_path: join(work, 'photo.jpg') });
assert.ok(picture.content.some((c) => c.type === 'image'));
const review = await ok('InvokeSkill', { skill_name: 'review', arguments: 'the guide' });
assert.match(text(review), /the guide/);
const greeting = await ok('InvokeSkill', { skill_name: 'hello-go', tool: 'greet', parameters: { name: kind } });
assert.equal(greeting.structuredContent.kind, 'tool');

// The callback has fired meanwhile, and come with the result of some call, or
// comes with one of these.
await until('the callback', async () => came || (await ok('SetCallback', { action: 'list' }), came));
const resource = await client.readResource({ uri: 'task://current' });
assert.match(resource.contents[0].text, /Write the guide/);
await client.close();
