import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CALLERS_LABEL } from "@aenv/contract";
import { unpackArchive } from "../bundle/archive.ts";

/** The base of images without a Dockerfile of their own; another one is given with `--build-arg BASE=…`. */
export const DEFAULT_BASE = "node:24-bookworm-slim";

/** The port on which the original's images listen too. */
export const DEFAULT_PORT = 8081;

export interface BundleContext extends Disposable {
  readonly dockerfile: string;
  readonly context: string;
}

/** A folder with the bundle and a Dockerfile for it, whose server listens on the port. Leaving the scope deletes it. */
export async function createBundleContext(bundle: Uint8Array, port: number): Promise<BundleContext> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-image-"));
  const dispose = () => rmSync(folder, { recursive: true, force: true });
  try {
    const context = join(folder, "context");
    await unpackArchive(bundle, join(context, "bundle"));
    const dockerfile = join(context, "Dockerfile");
    writeFileSync(dockerfile, dockerfileText(port));
    return { dockerfile, context, [Symbol.dispose]: dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

const SERVER = "/opt/aenv/bundle/main.js";

/** The label: with the engine docker, the server of the bundle takes only connections of the platform. */
function dockerfileText(port: number): string {
  return `ARG BASE=${DEFAULT_BASE}
FROM \${BASE}
COPY bundle /opt/aenv/bundle
WORKDIR /opt/aenv/bundle
LABEL ${CALLERS_LABEL}=${SERVER}
EXPOSE ${port}
CMD ["node", "${SERVER}", "--host", "0.0.0.0", "--port", "${port}"]
`;
}
