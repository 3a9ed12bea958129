// Connects one real client to the binary and uses the tools as an agent would.
//
//   node session.mjs v1|v2|v2-modern first|again SKILL WORKSPACE
import assert from 'node:assert/strict';
import { join } from 'node:path';
import sharp from 'sharp';
import { connect, text } from './connect.mjs';

const [kind, phase, command, work] = process.argv.slice(2);

async function ok(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result).slice(0, 600)}`);
  return result;
}

async function image(client, file, mime) {
  const result = await ok(client, 'ReadImage', { file_path: join(work, file) });
  const picture = result.content.find((c) => c.type === 'image');
  assert.ok(picture, `${file}: no image in ${text(result)}`);
  assert.ok(mime.includes(picture.mimeType), `${file}: ${picture.mimeType}`);
  const bytes = Buffer.from(picture.data, 'base64');
  const shown = await sharp(bytes).metadata();
  const said = result.structuredContent.shown;
  assert.deepEqual([shown.width, shown.height], [said.w, said.h], `${file}: the picture is not what the text says`);
  assert.ok(Math.max(shown.width, shown.height) <= 1568, `${file}: ${shown.width}x${shown.height}`);
  const { channels } = await sharp(bytes).stats(); // decodes every pixel
  assert.ok(channels[0].max - channels[0].min > 50, `${file}: the picture is flat`);
  const upright = shown.height > shown.width;
  assert.equal(upright, file === 'photo.jpg', `${file}: orientation`);
  console.log(`${file}: ${picture.mimeType} ${shown.width}x${shown.height}, ${bytes.length} bytes`);
}

const client = await connect(kind, command, ['serve', '--workspace', work]);
const { tools } = await client.listTools();
const names = tools.map((t) => t.name);
console.log('tools:', names.join(' '));
for (const name of ['ReadImage', 'TaskManager', 'InvokeSkill']) assert.ok(names.includes(name), name);
assert.ok(!names.some((n) => n.startsWith('refused')), 'a skill that nobody allowed is listed');

if (phase === 'first') {
  await ok(client, 'TaskManager', { action: 'create', text: `Release by ${kind}` });
  await ok(client, 'TaskManager', { action: 'add', text: 'write the notes' });
  await image(client, 'photo.jpg', ['image/jpeg']);
  await image(client, 'photo.png', ['image/png', 'image/jpeg']);
  await image(client, 'photo.webp', ['image/jpeg', 'image/png', 'image/webp']);
  const greeting = await ok(client, 'InvokeSkill', { skill_name: 'hello-go', tool: 'greet', parameters: { name: kind } });
  assert.match(text(greeting), new RegExp(kind));
  const review = await ok(client, 'InvokeSkill', { skill_name: 'review', arguments: 'the $ARGUMENTS of this change' });
  assert.match(text(review), /The change to review: the \$ARGUMENTS of this change/);
  const counted = await ok(client, 'wordcount-go.count', { text: 'one two  three\nfour' });
  assert.match(text(counted), /4/);
}

const list = await ok(client, 'TaskManager', { action: 'list' });
assert.match(text(list), new RegExp(`Release by ${kind}\\b`));

const denied = await client.callTool({ name: 'ReadImage', arguments: { file_path: '/etc/passwd' } });
assert.ok(denied.isError);
assert.match(text(denied), /denied/);
assert.match(text(denied), /filesystem = \["read:\$\{workspace\}", "read:\/etc\/passwd"\]/, text(denied));

const wrong = await client.callTool({ name: 'TaskManager', arguments: { action: 'explode' } });
assert.ok(wrong.isError);
assert.match(text(wrong), /\/action/);

await assert.rejects(client.callTool({ name: 'ReadImgae', arguments: {} }), /ReadImage/);
await assert.rejects(client.callTool({ name: 'refused.steal', arguments: {} }).then((r) => {
  if (r.isError) throw new Error(text(r));
}), /skill allow refused|no tool/);

await client.close();
console.log('ok');
