import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OciEngine } from "@aenv/sandbox";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { SharedFolders } from "./shared-folders.ts";

/** Mounts and loop devices below a folder. */
function mountedIn(home: string): string[] {
  const loops = execFileSync("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"], { encoding: "utf8" });
  return [...readFileSync("/proc/self/mountinfo", "utf8").split("\n"), ...loops.split("\n")].filter((line) => line.includes(home));
}

describeNeeding("overlay", "folders that the containers of an instance share", () => {
  const open = (home: string) => new SharedFolders(home, new OciEngine({ home, base: () => Promise.reject(new Error("not used")) }));

  it("hold no more than the limit, and leave no mount, loop device or file", async () => {
    using home = temporaryTree();
    const folders = open(home.path);
    const [limited, other] = [await folders.create("shop-1", 16), await folders.create("shop-2", undefined)];
    expect(statSync(limited).mode & 0o7777).toBe(0o1777);
    expect(readdirSync(limited)).toEqual([]);
    expect(() => writeFileSync(join(limited, "large"), Buffer.alloc(20 * 2 ** 20))).toThrow(/ENOSPC/);
    writeFileSync(join(other, "large"), Buffer.alloc(20 * 2 ** 20));
    expect(mountedIn(home.path)).toHaveLength(2);
    for (const id of await folders.list()) await folders.remove(id);
    await folders.remove("shop-1");
    expect(mountedIn(home.path)).toEqual([]);
    expect([existsSync(limited), await folders.list()]).toEqual([false, []]);
  });

  it("are found by the next server, whatever the last one had done of them", async () => {
    using home = temporaryTree();
    await open(home.path).create("whole", 16);
    mkdirSync(join(home.path, "shared/not-mounted"));
    writeFileSync(join(home.path, "shared-disks/not-mounted"), "");
    writeFileSync(join(home.path, "shared-disks/no-folder"), "");
    const next = open(home.path);
    expect([...(await next.list())].sort()).toEqual(["no-folder", "not-mounted", "whole"]);
    for (const id of await next.list()) await next.remove(id);
    expect(await next.list()).toEqual([]);
    expect(mountedIn(home.path)).toEqual([]);
  });

  it("leave nothing if they cannot be limited", async () => {
    using home = temporaryTree();
    const folders = open(home.path);
    await expect(folders.create("tiny", 1)).rejects.toThrow("at least 4");
    expect(await folders.list()).toEqual([]);
  });
});
