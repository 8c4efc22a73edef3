import type { ExactFile } from "@aenv/kit";
import { describe, expect, it } from "vitest";
import { compareListings } from "./compare.ts";
import { isCompared } from "./rules.ts";

const entry = (path: string, more: Partial<ExactFile> = {}): [string, ExactFile] => [
  path,
  {
    path,
    type: "file",
    size: 1,
    mode: 0o644,
    uid: 0,
    gid: 0,
    modifiedAt: "2026-01-01T00:00:00.000Z",
    modifiedNs: 0,
    changedAt: "2026-01-02T00:00:00.000Z",
    ...more,
  },
];
const folder = (path: string, more: Partial<ExactFile> = {}) => entry(path, { type: "directory", mode: 0o755, ...more });
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
const agentWith = (...changes: readonly (readonly [string, ExactFile | null])[]) => {
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
    const { copied, ...others } = compareListings(image, agent, []);
    // The times of a folder are those of its content, so it is copied too.
    expect(copied.toSorted()).toEqual(["/app", "/app/changed", "/app/link", "/app/new", "/app/new/b", "/app/socket"]);
    expect(others).toEqual({ removed: ["/app/gone", "/app/old"], names: new Map(), leftOut: [] });
  });

  it("of a type remove what was there", () => {
    const agent = agentWith(folder("/app/kept"), entry("/app/kept/inner"), link("/app/old", "/tmp"), ["/app/old/a", null]);
    expect(compareListings(image, agent, [])).toMatchObject({
      removed: ["/app/kept", "/app/old"],
      copied: ["/app", "/app/kept", "/app/old", "/app/kept/inner"],
    });
  });

  it.each([
    ["mode", { mode: 0o4755 }],
    ["owner", { uid: 1000 }],
    ["attributes", { attributes: "digest" }],
    ["time", { modifiedAt: "2026-01-03T00:00:00.000Z" }],
    ["time, by nanoseconds", { modifiedNs: 1 }],
    ["content, if size and time are those of the image", { changedAt: "2026-01-03T00:00:00.000Z" }],
  ])("of a file's %s count", (_, more) => {
    expect(compareListings(image, agentWith(entry("/app/kept", more)), []).copied).toEqual(["/app", "/app/kept"]);
  });

  it("of a folder's mode and attributes count, and its time does unless it is protected", () => {
    const agent = agentWith(folder("/app", { mode: 0o2775 }), folder("/app/old", { attributes: "digest" }));
    expect(compareListings(image, agent, [])).toMatchObject({ copied: ["/app", "/app/old"], leftOut: [] });
    const time = { modifiedAt: "2026-01-03T00:00:00.000Z" };
    const later = agentWith(folder("/app/old", time), folder("/usr/bin", time));
    expect(compareListings(image, later, [])).toMatchObject({ copied: ["/app", "/app/old"], leftOut: [] });
  });

  it("are none where each sandbox has copies of the image's files, with times of change of their own", () => {
    const copies = new Map([...image].map(([path, file]) => [path, { ...file, changedAt: "2026-01-05T00:00:00.000Z" }]));
    expect(compareListings(image, copies, [])).toEqual({ removed: [], copied: [], names: new Map(), leftOut: [] });
  });

  it("of a file with several names are copied once, and a protected file gets no further name", () => {
    const named = (path: string, inode: string) => entry(path, { inode });
    const names = (...changes: readonly (readonly [string, ExactFile])[]) => [...compareListings(image, agentWith(...changes), []).names];
    expect(names(named("/app/a", "1"), named("/app/b", "1"), named("/app/c", "1"))).toEqual([
      ["/app/b", "/app/a"],
      ["/app/c", "/app/a"],
    ]);
    expect(names(named("/app/kept", "1"), named("/app/new", "1"))).toEqual([["/app/new", "/app/kept"]]);
    expect(names(named("/usr/bin/cat", "1"), named("/app/cat", "1"))).toEqual([]);
    expect(names(named("/app/alone", "1"))).toEqual([]);
  });

  it("are also names that are no longer those of one file", () => {
    const one = new Map([...image, entry("/app/a", { inode: "1" }), entry("/app/b", { inode: "1" })]);
    expect(compareListings(one, one, []).copied).toEqual([]);
    const two = new Map([...one, entry("/app/b")]);
    expect(compareListings(one, two, [])).toMatchObject({ copied: ["/app", "/app/b"], names: new Map() });
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
    expect([changes.copied, changes.leftOut]).toEqual([[], [path]]);
    // If the task declares it as its result, it is copied.
    const { copied } = compareListings(base, new Map([...base, [path, file]]), [path]);
    expect(copied).toContain(path);
  });

  it("include new programs and removed files, but no removed program", () => {
    const agent = agentWith(entry("/usr/bin/new-tool"), ["/usr/bin/cat", null]);
    expect(compareListings(image, agent, [])).toMatchObject({ copied: ["/usr/bin/new-tool"], removed: [], leftOut: ["/usr/bin/cat"] });
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
    expect([replaced.copied, replaced.removed]).toEqual([[], ["/etc/kept"]]);
    const hidden = compareListings(base, new Map([...base, folder("/usr/local"), link("/usr/local/bin", "/evil")]), []);
    expect([hidden.copied, hidden.leftOut]).toEqual([["/usr", "/usr/local"], ["/usr/local/bin"]]);
    const below = compareListings(base, new Map([...base, folder("/lib"), entry("/lib/libc.so"), entry("/lib/new.so")]), []);
    expect([below.copied, below.removed]).toEqual([[], []]);
  });

  it("do not include what a listing shows below something that is no folder", () => {
    const agent = agentWith(link("/app/old", "/usr"), entry("/app/old/bin"));
    expect(compareListings(image, agent, [])).toMatchObject({ leftOut: ["/app/old/bin"] });
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
