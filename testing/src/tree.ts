import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A temporary folder that is deleted with the scope: `using tree = temporaryTree({ "src/a.ts": "…" })`. */
export interface Tree extends Disposable {
  readonly path: string;
  /** Adds or replaces files; values other than strings are written as JSON. */
  write(files: Files): void;
}

export type Files = Readonly<Record<string, unknown>>;

export function temporaryTree(files: Files = {}): Tree {
  const path = mkdtempSync(join(tmpdir(), "aenv-test-"));
  const write = (more: Files) => {
    for (const [name, contents] of Object.entries(more)) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), typeof contents === "string" ? contents : JSON.stringify(contents));
    }
  };
  write(files);
  return { path, write, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
