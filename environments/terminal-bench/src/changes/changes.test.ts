import type { SandboxFile } from "@aenv/kit";
import { describe, expect, it } from "vitest";
import { compareListings, downloadsOf } from "./compare.ts";
import { isCompared } from "./rules.ts";

const entry = (path: string, more: Partial<SandboxFile> = {}): [string, SandboxFile] => [
  path,
  { path, type: "file", size: 1, mode: 0o644, uid: 0, gid: 0, modifiedAt: "2026-01-01T00:00:00.000Z", ...more },
];
const folder = (path: string, more: Partial<SandboxFile> = {}) => entry(path, { type: "directory", mode: 0o755, ...more });
const link = (path: string, target: string) => entry(path, { type: "link", target });

const image = new Map([
  folder("/app"),
  entry("/app/kept"),
  entry("/app/changed"),
  entry("/app/gone"),
  folder("/app/old"),
  entry("/app/old/a"),
  folder("/usr"),
  folder("/usr/bin"),
  entry("/usr/bin/cat"),
  link("/usr/bin/python", "python3"),
]);
const agentWith = (...changes: readonly (readonly [string, SandboxFile | null])[]) => {
  const listing = new Map(image);
  for (const [path, file] of changes) file === null ? listing.delete(path) : listing.set(path, file);
  return listing;
};

describe("changes of the agent", () => {
  it("are new, changed and removed paths, and nothing else", () => {
    const agent = agentWith(
      entry("/app/changed", { size: 2 }),
      ["/app/gone", null],
      ["/app/old", null],
      ["/app/old/a", null],
      folder("/app/new"),
      entry("/app/new/b"),
      link("/app/link", "/etc/passwd"),
      entry("/app/socket", { type: "other" }),
    );
    expect(compareListings(image, agent, [])).toEqual({
      removed: ["/app/gone", "/app/old"],
      folders: ["/app/new"],
      files: ["/app/changed", "/app/new/b"],
      links: ["/app/link"],
      leftOut: ["/app/socket"],
    });
  });

  it("of a type remove what was there", () => {
    const agent = agentWith(folder("/app/kept"), entry("/app/kept/inner"), link("/app/old", "/tmp"), ["/app/old/a", null]);
    expect(compareListings(image, agent, [])).toMatchObject({
      removed: ["/app/kept", "/app/old"],
      folders: ["/app/kept"],
      files: ["/app/kept/inner"],
      links: ["/app/old"],
    });
  });

  it("of mode and owner count, also of folders", () => {
    const agent = agentWith(folder("/app", { mode: 0o700 }), entry("/app/kept", { uid: 1000 }));
    expect(compareListings(image, agent, [])).toMatchObject({ folders: ["/app"], files: ["/app/kept"] });
  });

  it.each([
    ["a program of the image", entry("/usr/bin/cat", { size: 5 })],
    ["a link of the image", link("/usr/bin/python", "/tmp/evil")],
    ["a program that hides another one", entry("/usr/local/bin/cat")],
    ["the list of preloaded libraries", entry("/etc/ld.so.preload")],
    ["a profile", entry("/etc/profile.d/x.sh")],
    ["a start-up file of a user", entry("/home/worker/.bashrc")],
    ["a module that Python loads at its start", entry("/usr/local/lib/python3.12/site-packages/sitecustomize.py")],
    ["a path file of Python", entry("/root/.local/lib/python3.12/site-packages/x.pth")],
    ["the configuration of pytest above all tests", entry("/conftest.py")],
  ])("do not include %s", (_, [path, file]) => {
    const folders = path
      .split("/")
      .slice(1, -1)
      .map((_name, i, all) => folder(`/${all.slice(0, i + 1).join("/")}`));
    const base = new Map([...image, ...folders]);
    const changes = compareListings(base, new Map([...base, [path, file]]), []);
    expect([changes.files, changes.links, changes.leftOut]).toEqual([[], [], [path]]);
    // Unless the task declares it as its result.
    const { files, links } = compareListings(base, new Map([...base, [path, file]]), [path]);
    expect([...files, ...links]).toEqual([path]);
  });

  it("include new programs and removed files, but no removed program", () => {
    const agent = agentWith(entry("/usr/bin/new-tool"), ["/usr/bin/cat", null]);
    expect(compareListings(image, agent, [])).toMatchObject({ files: ["/usr/bin/new-tool"], removed: [], leftOut: ["/usr/bin/cat"] });
  });

  it("do not include links in place of folders with programs, nor files below links of the image", () => {
    const base = new Map([
      ...image,
      link("/lib", "usr/lib"),
      folder("/usr/lib"),
      entry("/usr/lib/libc.so"),
      folder("/etc"),
      entry("/etc/kept"),
    ]);
    const moved = new Map([...base].filter(([path]) => !/^\/(?:usr|etc)/.test(path)));
    const replaced = compareListings(base, new Map([...moved, link("/usr", "/evil"), link("/etc", "/evil")]), []);
    expect([replaced.links, replaced.removed]).toEqual([[], ["/etc/kept"]]);
    const hidden = compareListings(base, new Map([...base, folder("/usr/local"), link("/usr/local/bin", "/evil")]), []);
    expect([hidden.folders, hidden.links, hidden.leftOut]).toEqual([["/usr/local"], [], ["/usr/local/bin"]]);
    const below = compareListings(base, new Map([...base, folder("/lib"), entry("/lib/libc.so"), entry("/lib/new.so")]), []);
    expect([below.files, below.folders, below.removed]).toEqual([[], [], []]);
  });

  it("do not include what a listing shows below something that is no folder", () => {
    const agent = agentWith(link("/app/old", "/usr"), entry("/app/old/bin"));
    expect(compareListings(image, agent, [])).toMatchObject({ files: [], leftOut: ["/app/old/bin"] });
  });
});

it("paths of the kernel, the platform and the verification are not compared", () => {
  const paths = [
    "/proc/1/stat",
    "/tests/test.sh",
    "/solution/solve.sh",
    "/logs/verifier/reward.txt",
    "/etc/hosts",
    "/logs/agent/x",
    "/etc/hostname2",
  ];
  expect(paths.filter((path) => isCompared(path))).toEqual(["/logs/agent/x", "/etc/hostname2"]);
  expect(paths.filter((path) => isCompared(path, ["/logs"]))).toEqual(["/etc/hostname2"]);
});

it("files in new folders are downloaded together", () => {
  expect(downloadsOf(["/app/changed", "/app/new/a", "/app/new/deep/b"], image)).toEqual([
    { path: "/app/changed", isFolder: false },
    { path: "/app/new", isFolder: true },
  ]);
});
