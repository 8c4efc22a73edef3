import { execFileSync, spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { EvaluationError } from "../evaluate/error.ts";
import type { CleanGit } from "../evaluate/task-sandbox.ts";
import { makePatch } from "./diff.ts";
import type { ImportedChange, ImportedFile } from "./fast-import.ts";

/** The git of this machine. */
const git: CleanGit = {
  run: async (args, { stdin, cwd } = {}) => {
    const { status, stdout, stderr } = spawnSync("git", args, { input: stdin ?? "", ...(cwd !== undefined && { cwd }) });
    return { exitCode: status ?? 1, stdout, stderr: String(stderr) };
  },
  write: async (path, bytes) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  },
  remove: async (path) => rmSync(path, { recursive: true, force: true }),
};

const fileOf = (path: string, content: Uint8Array | string, mode: ImportedFile["mode"] = "100644"): ImportedFile => ({
  path,
  mode,
  content: Buffer.from(content as string),
});

function write(root: string, { path, mode, content }: ImportedFile): void {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  if (mode === "120000") symlinkSync(content as Buffer, full);
  else writeFileSync(full, content, { mode: mode === "100755" ? 0o755 : 0o644 });
}

function read(root: string, path: string): ImportedFile {
  const full = join(root, path);
  const found = lstatSync(full);
  if (found.isSymbolicLink()) return fileOf(path, readlinkSync(full), "120000");
  return fileOf(path, readFileSync(full), found.mode & 0o100 ? "100755" : "100644");
}

/** Applies the patch to the files before it. */
async function apply(changes: readonly ImportedChange[]): Promise<(ImportedFile | null)[]> {
  const patch = await makePatch(git, changes);
  using tree = temporaryTree({ "work/x": "" });
  const root = join(tree.path, "work");
  for (const { before } of changes) if (before !== null) write(root, before);
  execFileSync("git", ["init", "-q"], { cwd: root });
  if (patch !== "") execFileSync("git", ["apply", "-"], { cwd: root, input: patch, stdio: "pipe" });
  return changes.map(({ path }) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === false ? read(root, path) : null,
  );
}

const change = (path: string, before: ImportedFile | null, after: ImportedFile | null): ImportedChange => ({ path, before, after });

it("a patch has texts, bytes, links, rights, new and removed files, and a folder in the place of a file", async () => {
  const changes = [
    change("text", fileOf("text", "a\nb\n"), fileOf("text", "a\nc")),
    change("crlf", fileOf("crlf", "a\r\n"), fileOf("crlf", "b\r\n")),
    change("bytes", fileOf("bytes", Buffer.from([0, 255, 1])), fileOf("bytes", Buffer.from([0, 254]))),
    change("latin", fileOf("latin", Buffer.from([233, 10])), fileOf("latin", Buffer.from([232, 10]))),
    change("link", fileOf("link", "text", "120000"), fileOf("link", "bytes", "120000")),
    change("run", fileOf("run", "x"), fileOf("run", "x", "100755")),
    change('new "one"\n\\é', null, fileOf('new "one"\n\\é', "n")),
    change("gone", fileOf("gone", "g"), null),
    change("folder", fileOf("folder", "f"), null),
    change("folder/file", null, fileOf("folder/file", "f")),
    change("empty", null, fileOf("empty", "")),
  ];
  expect(await apply(changes)).toEqual(changes.map(({ after }) => after));
});

it("a patch of any contents leads to these contents", async () => {
  const content = fc.oneof(fc.string(), fc.uint8Array(), fc.constantFrom("a\nb\n", "a\nb", "\n", "diff --git a/x b/x\n"));
  await fc.assert(
    fc.asyncProperty(content, content, async (one, other) => {
      const [before, after] = [fileOf("f", one as string), fileOf("f", other as string)];
      if (Buffer.compare(before.content, after.content) === 0) return;
      expect(await apply([change("f", before, after)])).toEqual([after]);
    }),
    { numRuns: 10 },
  );
});

it("nothing gives an empty patch, and what git refuses is a failure of the patch", async () => {
  expect(await makePatch(git, [])).toBe("");
  await expect(makePatch(git, [change("a//b", null, fileOf("a//b", "x"))])).rejects.toThrow(EvaluationError);
});
