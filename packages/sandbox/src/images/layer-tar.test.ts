import { buffer } from "node:stream/consumers";
import type { TarEntry } from "@aenv/contract";
import { TAR_END, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readTar } from "./layer-entries.ts";
import { type DevicePolicy, overlayTar } from "./layer-tar.ts";

type Written = Partial<TarEntry> & { readonly path: string };

const folder = (path: string): Written => ({ path, type: "directory", mode: 0o750 });
const link = (path: string, linkPath: string): Written => ({ path, type: "symlink", linkPath });

describe("a layer in the form of overlayfs", () => {
  it("keeps files, folders, links and owners, with paths relative to the root", async () => {
    const entries: Written[] = [
      folder("./"),
      folder("/a/"),
      { path: "a/b", mode: 0o4755, uid: 7, size: 3 },
      link("a/c", "/etc"),
      { path: "d", type: "hardlink", linkPath: "/a/b" },
    ];
    expect(await rewritten(entries)).toMatchObject([
      { path: "./", type: "directory", mode: 0o750 },
      { path: "./a/", type: "directory" },
      { path: "./a/b", mode: 0o4755, uid: 7, size: 3 },
      { path: "./a/c", type: "symlink", linkPath: "/etc" },
      { path: "./d", type: "hardlink", linkPath: "./a/b" },
    ]);
  });

  it("lists folders that the layer only implies, readable for all", async () => {
    expect(await rewritten([{ path: "a/b/c" }])).toMatchObject([
      { path: "./a/", mode: 0o755 },
      { path: "./a/b/", mode: 0o755 },
      { path: "./a/b/c" },
    ]);
  });

  it("has a device 0:0 for a deleted file", async () => {
    expect(await rewritten([folder("a"), { path: "a/.wh.b" }])).toMatchObject([
      {},
      { path: "./a/b", type: "character", major: 0, minor: 0 },
    ]);
  });

  it.each([
    ["after it", [folder("a"), { path: "a/.wh..wh..opq" }], [{}, { path: "./a/", mode: 0o750 }]],
    ["without it", [{ path: "a/.wh..wh..opq" }], [{ path: "./a/" }, { path: "./a/" }]],
    ["that was deleted first", [{ path: ".wh.a" }, folder("a")], [{ type: "character" }, { path: "./a/" }]],
    ["that was deleted later", [folder("a"), { path: ".wh.a" }], [{}, { path: "./a/" }]],
    [
      "that was deleted and is implied by a file",
      [{ path: ".wh.a" }, { path: "a/b" }],
      [{ type: "character" }, { path: "./a/" }, { path: "./a/b" }],
    ],
  ] as [string, Written[], object[]][])("marks a folder that hides those below: %s", async (_, entries, expected) => {
    const result = await rewritten(entries);
    expect(result).toMatchObject(expected);
    expect(result.findLast(({ type }) => type === "directory")?.attributes).toEqual({ "trusted.overlay.opaque": "y" });
  });

  it("keeps capabilities and attributes of users, and no attribute of overlayfs", async () => {
    const attributes = { "security.capability": "\x01", "user.a": "b", "user.overlay.opaque": "y", "trusted.overlay.redirect": "/x" };
    expect((await rewritten([{ path: "a", attributes }]))[0]?.attributes).toEqual({ "security.capability": "\x01", "user.a": "b" });
  });

  it("omits, refuses or keeps device nodes", async () => {
    const entries: Written[] = [{ path: "null", type: "character", major: 1, minor: 3 }];
    expect(await rewritten(entries)).toEqual([]);
    expect(await rewritten(entries, "keep")).toMatchObject([{ path: "./null", major: 1, minor: 3 }]);
    await expect(rewritten(entries, "refuse")).rejects.toThrow("'null' is a device node");
  });

  it.each([
    ["a path with ..", [{ path: "a/../../b" }], "leaves the root"],
    ["a file below a link", [link("a", "/etc"), { path: "a/passwd" }], "is below 'a', which is no folder but a symlink"],
    // Before: tar decided, sometimes one way and sometimes the other.
    ["a folder in the place of a link", [link("a", "/etc"), folder("./a")], "'a' is a folder in the place of a link"],
    ["a deletion below a link", [link("a", "/etc"), { path: "a/.wh.passwd" }], "is below 'a'"],
    ["a hard link through a link", [link("a", "/etc"), { path: "b", type: "hardlink", linkPath: "a/passwd" }], "is below 'a'"],
    ["a hard link to another layer", [{ path: "b", type: "hardlink", linkPath: "etc/passwd" }], "no file of the layer"],
    ["a hard link out of the root", [{ path: "b", type: "hardlink", linkPath: "../x" }], "leaves the root"],
    ["a file in a folder that marks a deletion", [{ path: ".wh.a/b" }], "marks a deletion"],
    ["a deletion of ..", [{ path: "a/.wh..." }], "deletes nothing that has a name"],
    ["a root that hides all layers", [{ path: ".wh..wh..opq" }], "not supported"],
  ] as [string, Written[], string][])("is refused for %s", async (_, entries, problem) => {
    await expect(rewritten(entries)).rejects.toThrow(problem);
  });

  it("never has a path that leaves the root or leads through a link of the layer", async () => {
    const path = fc
      .array(fc.constantFrom("a", "b", "..", ".", "", ".wh.a", ".wh.b", ".wh..wh..opq"), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join("/"));
    const type = fc.constantFrom("file", "directory", "symlink", "hardlink");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ path, type, linkPath: path }), { maxLength: 8 }), async (entries) => {
        const result = await rewritten(entries).catch((error) => {
          expect(error.message).toContain("unsafe layer");
          return [];
        });
        const links = new Set<string>();
        for (const entry of result) {
          const parts = entry.path.replace(/\/$/, "").split("/");
          expect(parts[0]).toBe(".");
          expect(parts).not.toContain("..");
          expect(parts.some((part) => part.startsWith(".wh."))).toBe(false);
          for (let depth = 1; depth < parts.length; depth++) expect(links).not.toContain(parts.slice(0, depth).join("/"));
          if (entry.type === "symlink") links.add(entry.path);
          else links.delete(entry.path);
        }
      }),
    );
  });
});

async function rewritten(entries: readonly Written[], devices?: DevicePolicy): Promise<TarEntry[]> {
  const plain: TarEntry = {
    path: "",
    type: "file",
    linkPath: "",
    mode: 0o644,
    uid: 0,
    gid: 0,
    size: 0,
    mtimeSeconds: 0,
    major: 0,
    minor: 0,
    attributes: {},
  };
  const archive = entries
    .map((entry) => ({ ...plain, ...entry }))
    .flatMap((entry) => [tarEntryHeader(entry), Buffer.alloc(entry.size), tarPaddingBytes(entry.size)]);
  const result: TarEntry[] = [];
  for await (const { entry, content } of readTar(overlayTar(parts([...archive, TAR_END]), devices))) {
    await buffer(content);
    result.push(entry);
  }
  return result;
}

async function* parts(all: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}
