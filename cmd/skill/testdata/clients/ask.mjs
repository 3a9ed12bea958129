// Asks the user through the binary, in every way that one of the real clients
// has for it. What a browser does, plain HTTP does here: the page needs no scripts.
//
//   node ask.mjs v1|v2|v2-modern SKILL WORKSPACE
import assert from 'node:assert/strict';
import { connect, text } from './connect.mjs';

const [kind, command, work] = process.argv.slice(2);
const form = kind === 'v2-modern' ? 'mrtr' : 'elicitation';

const questions = [
  { question: 'Which database?', header: 'Database', options: [{ label: 'Postgres', description: 'runs already' }, { label: 'SQLite' }] },
  { question: 'Which features?', multiSelect: true, options: ['Search', 'Export', 'Login'] },
];
const spellings = [JSON.stringify(questions), questions, JSON.stringify(JSON.stringify(questions))];

async function start(capabilities, answer) {
  const client = await connect(kind, command, ['serve', '--workspace', work], { capabilities, answer });
  const { tools } = await client.listTools();
  const tool = tools.find((t) => t.name === 'AskUserQuestion');
  assert.deepEqual([tool.inputSchema.properties.questions_json.type, tool.inputSchema.required], ['string', ['questions_json']]);
  assert.equal(tool.annotations.readOnlyHint, true);
  return client;
}

const ask = (client, args) => client.callTool({ name: 'AskUserQuestion', arguments: args });

function check(result, channel, selected) {
  assert.ok(!result.isError, text(result));
  const { answers, channel: way, duration_ms: ms } = result.structuredContent;
  assert.equal(way, channel);
  assert.ok(Number.isInteger(ms) && ms >= 0);
  assert.deepEqual(answers.map((a) => a.selected), selected, JSON.stringify(answers));
  return answers;
}

// What a person does with the page.
async function browse(url, fields) {
  const page = await fetch(url);
  assert.equal(page.status, 200);
  const html = await page.text();
  assert.match(html, /AskUserQuestion<\/strong> asks you/);
  assert.doesNotMatch(html, /<script/);
  const answered = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: { origin: new URL(url).origin } });
  assert.equal(answered.status, 200, await answered.clone().text());
  assert.match(await answered.text(), /Thank you/);
  assert.equal((await fetch(url)).status, 410, 'an address is good for one answer');
}

{ // The client shows the form itself.
  let seen;
  const replies = [
    { action: 'accept', content: { q1: 'SQLite', q2: ['Login', 'Search'] } },
    { action: 'accept', content: { q1: 'Postgres', q1_other: 'version 16', q2_other: 'Backups' } },
    { action: 'decline' },
    { action: 'cancel' },
  ];
  const client = await start({ elicitation: { form: {} } }, (params) => {
    seen = params;
    return replies.shift();
  });
  check(await ask(client, { questions_json: spellings[0] }), form, [['SQLite'], ['Login', 'Search']]);
  assert.deepEqual(seen.requestedSchema.properties.q1.oneOf, [{ const: 'Postgres', title: 'Postgres — runs already' }, { const: 'SQLite', title: 'SQLite' }]);
  assert.equal(seen.requestedSchema.properties.q2.items.anyOf.length, 3);
  const noted = check(await ask(client, { questions_json: spellings[1] }), form, [['Postgres'], []]);
  assert.equal(noted[0].notes, 'version 16');
  assert.equal(noted[1].other, 'Backups');
  assert.equal(check(await ask(client, { questions: questions }), form, [[], []])[0].unanswered, 'declined');
  const left = await ask(client, { questions_json: spellings[2] });
  assert.equal(check(left, form, [[], []])[1].unanswered, 'dismissed');
  assert.match(text(left), /Do not take that for consent/);
  const wrong = await ask(client, { questions_json: '[{]' });
  assert.ok(wrong.isError);
  assert.match(text(wrong), /not JSON.*want a list of 1 to 4 questions, such as \[\{"question"/s);
  await client.close();
}

{ // The client opens addresses only.
  let refuse = false;
  const client = await start({ elicitation: { url: {} } }, (params) => {
    assert.equal(params.mode, 'url');
    if (refuse) return { action: 'decline' };
    setTimeout(() => browse(params.url, { 'f0.0': '0', 'f0.2': '1', 'f0.3': 'and Mail', action: 'accept' }), 200); // he thinks
    return { action: 'accept' };
  });
  const answers = check(await ask(client, { questions_json: questions }), 'page', [['Postgres'], ['Export']]);
  assert.equal(answers[1].other, 'and Mail');
  refuse = true;
  assert.equal(check(await ask(client, { questions_json: questions }), 'url', [[], []])[0].unanswered, 'declined');
  await client.close();
}

{ // The client cannot ask, and nobody else is there.
  const client = await start({});
  const nobody = await ask(client, { questions_json: questions });
  assert.ok(nobody.isError);
  const report = nobody._meta['skill/needs_user'];
  assert.equal(report.needs_user, true);
  assert.match(text(nobody), /needs_user: .*Which database\?.*one of: Postgres — runs already \| SQLite.*skill answer/s);
  assert.ok(text(nobody).includes(report.page), text(nobody));
  const again = await ask(client, { questions_json: questions });
  assert.equal(again._meta['skill/needs_user'].page, report.page, 'the question is still the same');
  await browse(report.page, { 'f0.0': '1', 'f0.2': '2', action: 'accept' });
  check(await ask(client, { questions_json: questions }), 'page', [['SQLite'], ['Login']]);
  // What was answered was answered to that call only.
  assert.ok((await ask(client, { questions_json: questions })).isError);
  const told = await ask(client, { questions_json: questions, answers: { q1: 'Oracle', q2: ['Search'] } });
  assert.equal(check(told, 'call', [[], ['Search']])[0].other, 'Oracle');
  await client.close();
}

console.log(`${kind}: ok`);
