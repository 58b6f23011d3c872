/* Bundles the page with esbuild into what nightshiftd carries inside it.
 *
 *   node build.mjs PACKAGES OUT      PACKAGES: the folder with node_modules
 *
 * Writes page.html, page.js, page.css, each also as .gz, web.inc (their names for .incbin and a tag of their content)
 * and web.d (what ninja has to watch) to OUT.  Fails when what a browser has to fetch is larger than the limit.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const LIMIT = 80 * 1024; /* gzip, of all that a first visit fetches */

const here = dirname(fileURLToPath(import.meta.url));
const [packages, out] = process.argv.slice(2).map((path) => resolve(path));
if (!out) throw new Error('usage: node build.mjs PACKAGES OUT');
const { build } = createRequire(join(packages, 'package.json'))('esbuild');

/* Node.js 12, Ubuntu 22.04's, has no await out here. */
build({
  absWorkingDir: here,
  entryPoints: { page: join(here, 'src/main.jsx') },
  outdir: out,
  write: false,
  metafile: true,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome109', 'firefox115', 'safari16'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  /* The reader alone: the page writes YAML by itself. */
  alias: { 'js-yaml': join(packages, 'node_modules/js-yaml/lib/loader.js') },
  /* And of YAML 1.2 what JSON has too: no dates, sets or bytes. */
  plugins: [{ name: 'core-schema', setup: (b) => b.onResolve({ filter: /\/schema\/default$/ }, () => ({ path: join(packages, 'node_modules/js-yaml/lib/schema/core.js') })) }],
  nodePaths: [join(packages, 'node_modules')],
  legalComments: 'none',
  logLevel: 'warning',
}).then(write).catch((error) => {
  console.error(`web: ${error.message}`);
  process.exit(1);
});

function write(made) {
  const files = { 'page.html': readFileSync(join(here, 'index.html')) };
  for (const file of made.outputFiles) files[relative(out, file.path)] = Buffer.from(file.contents);

  let total = 0;
  const inc = ['/* Made by web/build.mjs. */'];
  const tag = createHash('sha256');
  for (const name of ['page.html', 'page.js', 'page.css']) {
    const small = gzipSync(files[name], { level: 9 });
    small[9] = 255; /* the byte that names the system it was made on: the same everywhere */
    total += small.length;
    tag.update(files[name]);
    writeFileSync(join(out, name), files[name]);
    writeFileSync(join(out, `${name}.gz`), small);
    const symbol = name.replace('.', '_');
    inc.push(`#define WEB_${symbol.toUpperCase()} "${join(out, name)}"`);
  }
  inc.push(`#define WEB_TAG "\\"${tag.digest('hex').slice(0, 20)}\\""`);
  if (total > LIMIT) {
    console.error(`web: the page is ${total} bytes in gzip, more than the ${LIMIT} that it may have (LIMIT in web/build.mjs)`);
    process.exit(1);
  }

  const inputs = Object.keys(made.metafile.inputs).map((path) => resolve(here, path)).filter((path) => path.startsWith(here));
  inputs.push(join(here, 'index.html'), join(here, 'build.mjs'));
  writeFileSync(join(out, 'web.d'), `web.inc: ${inputs.map((path) => path.split(' ').join('\\ ')).join(' ')}\n`);
  writeFileSync(join(out, 'web.inc'), `${inc.join('\n')}\n`);
}
