import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { loadClusterImage, temporaryTree } from "@aenv/testing";
import type { Architecture } from "../../engine/architecture.ts";
import { TEST_PROGRAM, testRootDigest, writeTestRoot } from "../../fixtures/test-root.ts";
import { initProgram } from "../../init/program.ts";

/**
 * Loads the image of the conformance suite into the cluster: its program, Node and the init. Returns its name. With `port`, the image
 * starts its program by itself.
 */
export async function loadTestImage(port?: number): Promise<string> {
  using tree = temporaryTree();
  const init = await initProgram(process.arch as Architecture);
  const name = `aenv.local/test-root:${testRootDigest().slice(-12)}-${init.split("init-")[1]?.slice(0, 12)}`;
  const write = () => {
    writeTestRoot(tree.path);
    mkdirSync(join(tree.path, "opt/aenv"), { recursive: true });
    copyFileSync(init, join(tree.path, "opt/aenv/init"));
    return tree.path;
  };
  if (port === undefined) {
    await loadClusterImage(name, write);
    return name;
  }
  const command = ["/usr/bin/node", TEST_PROGRAM, "serve", "--host", "0.0.0.0", "--port", String(port)];
  await loadClusterImage(`${name}-${port}`, write, command);
  return `${name}-${port}`;
}
