import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Registry extends AsyncDisposable {
  readonly url: string;
}

/**
 * A registry that has the package, and redirects npm to the real registry for everything else. So commands for the published
 * package can be run unchanged.
 */
export async function registryWith(tarball: Uint8Array, manifest: Readonly<Record<string, unknown>>, upstream: string): Promise<Registry> {
  const { name, version } = manifest as { name: string; version: string };
  const file = `/${name}/-/${name}-${version}.tgz`;
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    // npm caches responses by URL, and another run may get the same port.
    response.setHeader("cache-control", "no-store");
    if (path === file) return response.end(tarball);
    if (path !== `/${name}`) return response.writeHead(307, { location: new URL(path.slice(1), upstream).href }).end();
    const dist = { tarball: url + file, integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}` };
    const packument = { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } };
    response.setHeader("content-type", "application/json").end(JSON.stringify(packument));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
