import type { TreeFile } from "./compare.ts";

export interface ImportedFile {
  readonly path: string;
  readonly mode: TreeFile["mode"];
  readonly content: Uint8Array;
}

export interface ImportedChange {
  readonly path: string;
  readonly before: ImportedFile | null;
  readonly after: ImportedFile | null;
}

/** Input of `git fast-import`: the changed files as they were in the branch `before`, and as they are in `after`. */
export function importStream(changes: readonly ImportedChange[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const text = (line: string) => parts.push(Buffer.from(line));
  const write = ({ path, mode, content }: ImportedFile) => {
    text(`M ${mode} inline ${quoted(path)}\ndata ${content.length}\n`);
    parts.push(content);
    text("\n");
  };
  text(`commit refs/heads/before\n${HEAD}`);
  for (const { before } of changes) if (before !== null) write(before);
  text(`commit refs/heads/after\n${HEAD}from refs/heads/before\n`);
  // First, because a folder can take the name of a file.
  for (const { path, before } of changes) if (before !== null) text(`D ${quoted(path)}\n`);
  for (const { after } of changes) if (after !== null) write(after);
  text("done\n");
  return Buffer.concat(parts);
}

const HEAD = "committer aenv <aenv@localhost> 0 +0000\ndata 0\n";

function quoted(path: string): string {
  return `"${path.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"`;
}
