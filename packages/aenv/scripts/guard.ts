import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const guard = 'import { refuseOldNode } from "../bin/node-version.js";\nrefuseOldNode("aenvironment");\n';

/**
 * Makes the entries of the built package throw one sentence if Node is too old.
 *
 * The first import of a module is evaluated first, so the guard is written before the code of the bundler. All other imports must
 * link on an old Node, which a test checks.
 */
export function guardEntries(lib: string, entries: readonly string[]): void {
  writeFileSync(join(lib, "need-node.js"), guard);
  for (const entry of entries) {
    const file = join(lib, `${entry}.js`);
    writeFileSync(file, `import "./need-node.js";\n${readFileSync(file, "utf8")}`);
  }
}
