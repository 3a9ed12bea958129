// Comes to a server that asks who calls, without being told anything but its
// address: the client finds out where tokens are had, gets one, and uses it.
//
//   node oauth.mjs v1|v2|v2-modern robot|person|few|token URL ISSUER [TOKEN]
//
// robot has an account of its own; person is somebody in front of a browser;
// few has a token that is too weak, and lets the client get a better one; token
// is somebody whom the operator gave one.
import assert from 'node:assert/strict';
import { text } from './connect.mjs';

const [kind, who, address, issuer, given] = process.argv.slice(2);
const metadata = new URL('/.well-known/oauth-protected-resource/mcp', address).href;
const library = kind === 'v1'
  ? {
    ...await import('@modelcontextprotocol/sdk/client/index.js'),
    ...await import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    ...await import('@modelcontextprotocol/sdk/client/auth-extensions.js'),
    ...await import('@modelcontextprotocol/sdk/client/auth.js'),
  }
  : await import('@modelcontextprotocol/client');

// What went over the wire.
const seen = [];
async function watched(url, init) {
  const response = await fetch(url, init);
  seen.push({
    step: `${init?.method ?? 'GET'} ${new URL(url).origin}${new URL(url).pathname} ${response.status}`,
    challenge: response.headers.get('www-authenticate'), body: String(init?.body ?? ''),
  });
  return response;
}
const steps = () => seen.map((s) => s.step);
const begins = (...want) => assert.deepEqual(steps().slice(0, want.length), want, steps().join('\n'));
const asked = (grant) => seen.filter((s) => s.step === `POST ${issuer}/token 200` && s.body.includes(`grant_type=${grant}`));

// A robot asks for the scopes that the challenge names, or always for the same.
// v1 does not tell it what the challenge names: there it has to know.
class Robot extends library.ClientCredentialsProvider {
  constructor(always) {
    super({ clientId: 'robot', clientSecret: 'a-secret-of-the-test', expectedIssuer: issuer, scope: kind === 'v1' ? 'tools.read' : undefined });
    this.always = always;
  }

  prepareTokenRequest(scope) { return super.prepareTokenRequest(this.always ?? scope); }
}

// A person's client registers itself, and sends the person to a browser.
class Person {
  redirectUrl = 'http://127.0.0.1:9/callback'; // never reached: the browser stops there

  get clientMetadata() {
    return {
      client_name: 'end to end', redirect_uris: [this.redirectUrl], grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native',
    };
  }

  state() { return 'a-state-of-the-test'; }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  discoveryState() { return this.discovered; }
  saveDiscoveryState(state) { this.discovered = state; }
  redirectToAuthorization(url) { this.sentTo = url; }
}

// A browser that follows redirects, keeps cookies, and sends each form that it
// is shown: somebody logs in, and consents. It returns where it is sent at last.
async function browse(start, end, login) {
  const jar = new Map();
  let [url, init] = [start, {}];
  for (let i = 0; i < 20; i++) {
    const cookie = [...jar].map((c) => c.join('=')).join('; ');
    const response = await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } });
    for (const c of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(c);
      if (value) jar.set(name, value);
      else jar.delete(name);
    }
    const location = response.headers.get('location');
    if (location) {
      [url, init] = [new URL(location, url), {}];
      if (url.href.startsWith(end)) return url;
      continue;
    }
    const page = await response.text();
    const form = /<form[^>]*action="([^"]+)"/.exec(page);
    assert.ok(response.ok && form, `${response.status} ${url}: ${page.slice(0, 2000)}`);
    const fields = new URLSearchParams();
    for (const [input] of page.matchAll(/<input[^>]*>/g)) {
      const attribute = (name) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
      if (attribute('name')) fields.set(attribute('name'), attribute('value') ?? login);
    }
    [url, init] = [new URL(form[1], url), { method: 'POST', body: fields }];
  }
  throw new Error(`no end at ${url}`);
}

async function connect(authProvider, more) {
  const transport = new library.StreamableHTTPClientTransport(new URL(address), { authProvider, fetch: watched, ...more });
  const modern = kind === 'v2-modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
  const client = new library.Client({ name: `end-to-end-${kind}`, version: '1.0.0' }, { capabilities: {}, ...modern });
  try {
    await client.connect(transport);
  } catch (error) {
    throw Object.defineProperty(error, 'transport', { value: transport }); // unseen where it is printed
  }
  return client;
}

// What the scope tools.read is good for, and no more.
async function use(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name), ['hello-go.greet']);
  const greeting = await client.callTool({ name: 'hello-go.greet', arguments: { name: who } });
  assert.ok(!greeting.isError && text(greeting).includes(who), JSON.stringify(greeting));
  const say = async (name) => client.callTool({ name, arguments: { text: 'a' } }).then(JSON.stringify, (e) => `${e.code} ${e.message} ${JSON.stringify(e.data)}`);
  const [hidden, absent] = [await say('wordcount-go.count'), await say('wordcount-go.nothing')];
  assert.match(hidden, /^-32602 .*no tool "wordcount-go\.count"/);
  assert.equal(hidden.replaceAll('wordcount-go.count', 'X'), absent.replaceAll('wordcount-go.nothing', 'X'), 'a tool that may not be called is not as one that does not exist');
  await client.close();
  return hidden;
}

// The way from the challenge to the server that issues tokens.
function discovered() {
  begins(`POST ${address} 401`, `GET ${metadata} 200`);
  assert.ok(seen[0].challenge.includes(`resource_metadata="${metadata}"`), seen[0].challenge);
  assert.ok(steps().some((s) => s.startsWith(`GET ${issuer}/.well-known/`) && s.endsWith(' 200')), steps().join('\n'));
}

const people = {
  async robot() {
    console.log(await use(await connect(new Robot())));
    discovered();
    const [grant, ...more] = asked('client_credentials');
    assert.deepEqual(more, [], 'one token was enough');
    const form = new URLSearchParams(grant.body);
    assert.equal(form.get('resource'), address);
    assert.equal(form.get('scope'), 'tools.read');
  },
  async person() {
    const ann = new Person();
    const stopped = await connect(ann).then(() => assert.fail('it came in without a token'), (e) => e);
    assert.ok(stopped instanceof library.UnauthorizedError, stopped.stack);
    discovered();
    assert.equal(ann.sentTo.origin, issuer);
    assert.equal(ann.sentTo.searchParams.get('code_challenge_method'), 'S256');
    assert.equal(ann.sentTo.searchParams.get('resource'), address);
    const back = await browse(ann.sentTo, ann.redirectUrl, 'ann');
    assert.equal(back.searchParams.get('state'), ann.state(), back.href);
    await stopped.transport.finishAuth(kind === 'v1' ? back.searchParams.get('code') : back.searchParams);
    await use(await connect(ann));
    assert.equal(asked('authorization_code').length, 1);

    if (!ann.kept.refresh_token) return assert.equal(kind, 'v1', 'no refresh token'); // v1 does not ask for one
    ann.kept = { ...ann.kept, access_token: `${ann.kept.access_token}x` };
    await use(await connect(ann));
    assert.equal(asked('refresh_token').length, 1, steps().join('\n'));
  },
  async few() {
    // One that gets no better token is told which one it needs.
    const weak = await connect(new Robot('mail.read'), { onInsufficientScope: 'throw' }).then(() => assert.fail('it came in'), (e) => e);
    if (kind !== 'v1') {
      assert.equal(weak.name, 'InsufficientScopeError', weak.stack);
      assert.equal(weak.requiredScope, 'tools.read');
    }
    const refused = seen.find((s) => s.step === `POST ${address} 403`);
    assert.match(refused?.challenge ?? steps().join('\n'), /error="insufficient_scope".*scope="tools.read"/);
    // One that has such a token gets a better one by itself.
    const robot = new Robot();
    const first = await fetch(`${issuer}/token`, {
      method: 'POST', headers: { authorization: `Basic ${btoa('robot:a-secret-of-the-test')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'mail.read', resource: address }),
    });
    robot.saveTokens({ ...await first.json(), issuer });
    seen.length = 0;
    await use(await connect(robot));
    begins(`POST ${address} 403`, `GET ${metadata} 200`);
    assert.equal(asked('client_credentials').length, 1);
  },
  async token() {
    await use(await connect(undefined, { requestInit: { headers: { Authorization: `Bearer ${given}` } } }));
    assert.ok(steps().every((s) => s.includes(` ${address} `) && !s.endsWith(' 401')), steps().join('\n'));
  },
};

await people[who]();
console.log(steps().join('\n'));
