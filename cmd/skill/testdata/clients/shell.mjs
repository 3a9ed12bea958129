// Works with the five shell tools as an agent would, on real commands: a Go
// build, a clone of a local repository, and a server that runs until it is
// killed.
//
//   node shell.mjs v1|v2|v2-modern WORKSPACE COMMAND [ARGUMENT ...]
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, text } from './connect.mjs';

const [kind, work, command, ...args] = process.argv.slice(2);
const client = await connect(kind, command, args);
const call = (name, args) => client.callTool({ name, arguments: args }, undefined, { timeout: 180_000 });

async function ok(name, args) {
  const result = await call(name, args);
  assert.ok(!result.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(result).slice(0, 2000)}`);
  return result;
}
const bash = (command, more) => ok('Bash', { command, ...more });
async function fails(command, more) {
  const result = await call('Bash', { command, ...more });
  assert.ok(result.isError, `${command}: ${JSON.stringify(result).slice(0, 600)}`);
  return result;
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const { tools } = await client.listTools();
for (const name of ['Bash', 'BackgroundBash', 'ReadBgOutput', 'ListBgTasks', 'KillBgTask']) {
  assert.ok(tools.some((t) => t.name === name), `${name} is not listed`);
}

// What ran, where, and how it ended.
const hello = await bash('echo "hello from $PWD"; echo trouble >&2');
assert.match(text(hello), new RegExp(`hello from ${work}`));
assert.equal(hello.structuredContent.exit_code, 0);
assert.equal(hello.structuredContent.stderr, 'trouble\n');
const three = await fails('echo before; exit 3');
assert.equal(three.structuredContent.exit_code, 3);
assert.match(text(three), /before/);

// A timeout keeps what was said, and leaves nothing running.
const slow = await fails('echo started; setsid sleep 300 & sleep 300', { timeout: 1500 });
assert.equal(slow.structuredContent.timed_out, true);
assert.match(text(slow), /started/);
const began = Date.now();
await bash('sleep 300 & echo done');
assert.ok(Date.now() - began < 20_000, 'a child in the background held the reply');

// Real work: a clone of a local repository and a build with a cache that lasts.
await bash(`git init -q --initial-branch=main origin && cd origin && git config user.name agent && git config user.email agent@example.com &&
printf 'module example.com/hello\\n\\ngo 1.21\\n' > go.mod &&
printf 'package main\\n\\nimport "fmt"\\n\\nfunc main() { fmt.Println("built in a cage") }\\n' > main.go &&
git add . && git commit -q -m first`);
const clone = await bash('git clone -q origin copy && cd copy && git log --oneline && git status --short');
assert.match(text(clone), /first/);
const build = await bash('cd copy && go build -o hello . && ./hello && go env GOCACHE', { timeout: 170_000 });
assert.match(text(build), /built in a cage/);
assert.ok(existsSync(join(work, 'copy', 'hello')), 'the build is not in the workspace');
const again = await bash('cd copy && touch main.go && go build -x -o hello2 . 2>&1 | grep -c "compile -o" || true', { timeout: 170_000 });
assert.match(text(again), /^[01]\b/, `nothing of the first build was kept: ${text(again)}`);

// Much output: the head and the tail, and all of it on request.
const much = await bash('seq 1 100000');
assert.ok(text(much).length < 40_000, `${text(much).length} characters`);
assert.match(text(much), /^1\n2\n/m);
assert.match(text(much), /\n100000\b/);
assert.ok(much.structuredContent.truncated.bytes_omitted > 400_000, JSON.stringify(much.structuredContent.truncated));
assert.ok(much.content.some((c) => c.type === 'resource_link' && c.uri === much.structuredContent.output_uri));
const page = await ok('ReadBgOutput', { task_id: much.structuredContent.output_id, cursor: 0 });
assert.match(page.structuredContent.output, /^1\n2\n3\n/);

// A server that runs, is read bit by bit, and is killed.
const started = await ok('BackgroundBash', { command: 'for i in $(seq 1 1000); do echo "tick $i"; sleep 0.2; done' });
const id = started.structuredContent.task_id;
assert.ok(Number.isInteger(id), JSON.stringify(started.structuredContent));
let seen = started.structuredContent.early_output ?? '';
for (let i = 0; i < 50 && !seen.includes('tick 9\n'); i++) {
  const more = await ok('ReadBgOutput', { task_id: id, wait_ms: 1000, ...(i === 0 ? { cursor: 0 } : {}) });
  seen = i === 0 ? more.structuredContent.output : seen + more.structuredContent.output;
  assert.equal(more.structuredContent.status, 'running');
}
for (let i = 1; i < 9; i++) {
  assert.equal(seen.split(`tick ${i}\n`).length, 2, `tick ${i} was not read exactly once: ${JSON.stringify(seen)}`);
}
const listed = await ok('ListBgTasks', {});
assert.ok(listed.structuredContent.tasks.some((t) => t.task_id === id && t.status === 'running'), JSON.stringify(listed.structuredContent));
const killed = await ok('KillBgTask', { task_id: id });
assert.equal(killed.structuredContent.status, 'killed', JSON.stringify(killed.structuredContent));
const over = await ok('ReadBgOutput', { task_id: id, cursor: 0 });
assert.equal(over.structuredContent.status, 'killed');
const web = await ok('BackgroundBash', { command: 'python3 -u -m http.server --bind 127.0.0.1 8123' });
await pause(500);
await ok('KillBgTask', { task_id: web.structuredContent.task_id });

// The cage.
assert.notEqual((await call('Bash', { command: 'echo x > /etc/skill-was-here' })).structuredContent.exit_code, 0);
assert.ok(!existsSync('/etc/skill-was-here'));
const secret = await call('Bash', { command: 'cat /proc/1/environ /proc/self/environ | tr "\\0" "\\n"' });
assert.ok(!text(secret).includes('HOST_SECRET'), 'the environment of the host is in the cage');
const net = await fails('exec 3<>/dev/tcp/127.0.0.1/22');
assert.doesNotMatch(text(net), /SSH/);
const hook = await call('Bash', { command: 'cd copy && cd .. && mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout' });
assert.ok(hook.isError || !existsSync(join(work, '.git/hooks/post-checkout')), text(hook));
assert.equal(readFileSync(join(work, '.git/config'), 'utf8').includes('evil'), false);

const wrong = await call('ReadBgOutput', { task_id: 987654 });
assert.ok(wrong.isError);

await client.close();
console.log('ok');
