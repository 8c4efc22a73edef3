import { execFileSync } from "node:child_process";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { digestOf } from "../hub/archives/digest.ts";
import { SqliteStore } from "../stores/sqlite/store.ts";
import { backUp } from "./backup.ts";
import { restore } from "./restore.ts";

const [SLOW, GONE] = ["0", "f"].map((digit) => digit.repeat(64)) as [string, string];

/** The files of an archive in the home, without those of the content. */
function record(hex: string, content: string): Record<string, string> {
  const value = {
    digest: `sha256:${hex}`,
    archiveDigest: digestOf(content),
    size: content.length,
    unpackedSize: 9,
    file: `${hex}.one.tar.gz`,
  };
  return { [`home/blobs/sha256/${hex.slice(0, 2)}/${hex}.json`]: JSON.stringify(value) };
}

it("copies the store again if an archive that it names is removed meanwhile", async () => {
  using tree = temporaryTree({ ...record(SLOW, "slow"), ...record(GONE, "gone"), [`home/blobs/sha256/ff/${GONE}.one.tar.gz`]: "gone" });
  const home = join(tree.path, "home");
  const config = { home, store: `sqlite:${join(home, "server.db")}` };
  const store = SqliteStore.open(join(home, "server.db"));
  try {
    const version = (name: string, hex: string) => ({ name, version: "1.0.0", bundleDigest: `sha256:${hex}`, sourceDigest: null });
    await store.insert("environment", "slow@1.0.0", version("slow", SLOW), {});
    await store.insert("environment", "gone@1.0.0", version("gone", GONE), {});
    // A pipe is read until its writer closes it, so the backup stands there while the version is removed.
    const pipe = join(home, `blobs/sha256/00/${SLOW}.one.tar.gz`);
    execFileSync("mkfifo", [pipe]);
    const writing = backUp({ config, target: join(tree.path, "backup"), version: "1.0.0" });
    await using writer = await open(pipe, "w");
    await store.remove("environment", "gone@1.0.0");
    await rm(join(home, "blobs/sha256/ff"), { recursive: true });
    await writer.writeFile("slow");
    await writer.close();
    const { contents, damaged, files } = await writing;
    expect([contents.environments, damaged]).toEqual([1, []]);
    expect(files.map(({ path }) => path)).toEqual([`blobs/sha256/00/${SLOW}.tar.gz`, `blobs/sha256/00/${SLOW}.json`, "server.db"]);
    const into = join(tree.path, "restored");
    await restore({ config: { home: into, store: `sqlite:${join(into, "server.db")}` }, source: join(tree.path, "backup") });
  } finally {
    await store.close();
  }
});
