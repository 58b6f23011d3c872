/* A real OpenID provider (oidc-provider) on loopback for tests.
 *
 *   node provider.mjs FOLDER <pipe      ends with its standard input
 *
 * FOLDER/settings.json is read once: issuer, port, keys (a JWKS with private keys), clients, skew_s (its clock
 * is off by so much), cert and key (files: it then speaks https), auth_methods.
 * FOLDER/people.json is read at each look: {"ana": {"name": ..., "email": ..., "groups": [...]}}.
 * FOLDER/bend.json, when it is there, is read at each answer and says how to lie:
 *   {"claims": {...}}   ID tokens are signed anew with these claims put in
 *   {"how": "none" | "hmac" | "tamper"}   what is done to their signature
 *   {"keys": {"keys": [...]}}   what is published instead of the provider's own keys
 *   {"userinfo": {...}}   what is put into userinfo answers
 */
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';

import Provider from 'oidc-provider';
import * as jose from 'jose';

const folder = process.argv[2];
const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
const bent = () => (fs.existsSync(path.join(folder, 'bend.json')) ? read('bend.json') : {});
const settings = read('settings.json');

const now = Date.now.bind(Date);
Date.now = () => now() + (settings.skew_s ?? 0) * 1000;

const provider = new Provider(settings.issuer, {
  clients: settings.clients,
  clientAuthMethods: settings.auth_methods ?? ['client_secret_basic', 'none'],
  jwks: settings.keys,
  cookies: { keys: ['only a test'] },
  pkce: { required: () => true, methods: ['S256'] },
  scopes: ['openid', 'offline_access', 'profile', 'email', 'groups'],
  claims: {
    openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'],
  },
  features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
  ttl: { AccessToken: 600, AuthorizationCode: 60, DeviceCode: settings.device_ttl_s ?? 600, IdToken: 600,
    // Longer than any skew_s: they are the life of cookies too, which a browser with a right clock keeps.
    Grant: 36000, Interaction: 36000, RefreshToken: 36000, Session: 36000 },
  async findAccount(ctx, id) {
    const person = read('people.json')[id];
    return person && { accountId: id, claims: async () => ({ sub: id, preferred_username: id, ...person }) };
  },
});

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

async function bend(token, { claims, how }) {
  const [head, body, signature] = token.split('.');
  const header = JSON.parse(Buffer.from(head, 'base64url'));
  const said = { ...JSON.parse(Buffer.from(body, 'base64url')), ...claims };
  const jwk = settings.keys.keys.find((key) => key.kid === header.kid);
  if (how === 'none') return `${part({ ...header, alg: 'none' })}.${part(said)}.`;
  if (how === 'tamper') return `${head}.${part({ ...said, sub: 'root' })}.${signature}`;
  if (how === 'hmac') {
    const open = await jose.exportSPKI(await jose.importJWK({ kty: jwk.kty, n: jwk.n, e: jwk.e }, 'RS256'));
    return new jose.SignJWT(said).setProtectedHeader({ ...header, alg: 'HS256' }).sign(Buffer.from(open));
  }
  return new jose.SignJWT(said).setProtectedHeader(header).sign(await jose.importJWK(jwk, header.alg));
}

provider.use(async (ctx, next) => {
  await next();
  const lie = bent();
  if (ctx.path === '/token' && ctx.body?.id_token && (lie.claims || lie.how)) {
    ctx.body = { ...ctx.body, id_token: await bend(ctx.body.id_token, lie) };
  }
  if (ctx.path === '/jwks' && lie.keys) ctx.body = lie.keys;
  if (ctx.path === '/me' && lie.userinfo) ctx.body = { ...ctx.body, ...lie.userinfo };
});

const server = settings.cert
  ? https.createServer({ cert: fs.readFileSync(settings.cert), key: fs.readFileSync(settings.key) }, provider.callback())
  : http.createServer(provider.callback());
server.listen(settings.port, '127.0.0.1', () => process.stdout.write('ready\n'));
process.stdin.on('end', () => process.exit(0)).resume();
