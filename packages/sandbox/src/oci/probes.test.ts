import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, mountUntranslatedDisk, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { probeProgram } from "../host/probe.ts";
import { probeNetwork } from "../network/probes.ts";
import { probeControlGroups, probeOverlay, probeOwnUsers, probeSandbox } from "./probes.ts";

describe("the probe of a program", () => {
  it("returns the first line of its output", async () => {
    expect(await probeProgram("sh", ["-c", "echo one; echo two"])).toEqual({ ok: true, detail: "one" });
  });

  it("says that there is none", async () => {
    expect(await probeProgram("no-such-program", [])).toEqual({ ok: false, reason: "no program 'no-such-program'" });
  });

  it("says why it failed", async () => {
    const failed = await probeProgram("sh", ["-c", "echo broken >&2; exit 3"]);
    expect(failed).toEqual({ ok: false, reason: "'sh -c echo broken >&2; exit 3' failed: broken" });
  });
});

describeNeeding("overlay", "the probes of this machine", () => {
  it("mount an overlay below a home that does not exist yet, and leave nothing", async () => {
    using tree = temporaryTree();
    expect(await probeOverlay(join(tree.path, "home"))).toEqual({ ok: true, detail: `mounted below ${tree.path}` });
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("report what limits and networks lack, or that they work", async () => {
    for (const result of [await probeControlGroups(), await probeNetwork()])
      expect(result).toEqual(result.ok ? { ok: true, detail: expect.any(String) } : { ok: false, reason: expect.any(String) });
  });
});

describeNeeding("runc", "the probe of a runtime", () => {
  it("starts a sandbox with users of its own and leaves nothing", async () => {
    using tree = temporaryTree();
    const place = { home: join(tree.path, "home"), users: "own" } as const;
    expect(await probeOwnUsers(place)).toEqual({ ok: true, detail: "root of a sandbox is no user of this machine" });
    expect(await probeSandbox("runc", place)).toEqual({
      ok: true,
      detail: expect.stringMatching(/^(?:crun|runc) started a sandbox in \d+ ms/),
    });
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("starts a sandbox with the users of the machine by runc, where images are on a disk that cannot translate owners", async () => {
    using tree = temporaryTree();
    using disk = mountUntranslatedDisk();
    const place = { home: tree.path, store: join(disk.path, "store"), users: "own" } as const;
    expect(await probeOwnUsers(place)).toEqual({
      ok: false,
      reason: expect.stringMatching(/^root of a sandbox is root of this machine: /),
    });
    expect(await probeSandbox("runc", place)).toEqual({ ok: true, detail: expect.stringMatching(/^runc started a sandbox in \d+ ms/) });
    expect([...readdirSync(tree.path), ...readdirSync(disk.path)]).toEqual([]);
  });

  it("says that root of sandboxes is root of the machine, if the operator has chosen so", async () => {
    using tree = temporaryTree();
    expect(await probeOwnUsers({ home: tree.path, users: "machine" })).toMatchObject({
      ok: false,
      reason: expect.stringContaining("machine"),
    });
  });

  it("says what is missing", async () => {
    using tree = temporaryTree();
    const result = await probeSandbox("runsc", { home: tree.path, users: "own" }, "/nowhere/runsc");
    expect(result).toEqual({ ok: false, reason: expect.stringContaining("no program '/nowhere/runsc'") });
    expect(readdirSync(tree.path)).toEqual([]);
  });
});
