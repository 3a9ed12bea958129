// A real authorization server on a loopback port, with a program's account, with
// clients that register themselves, and with people who log in and consent. It
// prints its address when it listens, and ends with its input.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
// The one copy that is pinned in this tree, for the tests of host/mcp/bearer.
import Provider from '../../../../host/mcp/bearer/testdata/provider/node_modules/oidc-provider/lib/index.js';

process.stdin.on('end', () => process.exit(0)).resume();

const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
const scopes = ['tools.read', 'tools.write', 'mail.read'];

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, alg: 'ES256', use: 'sig', kid: 'one' }] },
  scopes: ['openid', 'offline_access', ...scopes],
  clients: [{
    client_id: 'robot', client_secret: 'a-secret-of-the-test', token_endpoint_auth_method: 'client_secret_basic',
    id_token_signed_response_alg: 'ES256', grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
  }],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: true }, // its own pages for login and consent
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: scopes.join(' '), audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 3600, jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
});
server.on('request', provider.callback());
console.log(issuer);
