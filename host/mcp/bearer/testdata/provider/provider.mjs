// A real OpenID provider on a loopback port. Its settings come as JSON on
// standard input: {"port", "keys", "alg", "ttl", "scopes"}; it prints its issuer
// when it listens, and ends with its input.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const lines = createInterface({ input: process.stdin });
const set = JSON.parse(await new Promise((ready) => lines.once('line', ready)));
lines.on('close', () => process.exit(0));

const server = createServer();
await new Promise((ready) => server.listen(set.port, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  jwks: { keys: set.keys },
  scopes: set.scopes,
  clients: [{
    client_id: 'robot', client_secret: 'a-secret-of-the-test', token_endpoint_auth_method: 'client_secret_post',
    id_token_signed_response_alg: set.alg, grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
  }],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: set.scopes.join(' '), audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: set.ttl, jwt: { sign: { alg: set.alg } },
      }),
    },
  },
});
server.on('request', provider.callback());
console.log(issuer);
