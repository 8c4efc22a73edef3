import { randomBytes } from "node:crypto";
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describeNeeding, mountSmallDisk } from "@aenv/testing";
import { expect, it, vi } from "vitest";
import { type Answer, projects, publish, startPlatform } from "./platform.ts";

const digest = `sha256:${"0".repeat(64)}`;
const archive = () => gzipSync(randomBytes(300_000));

/** Fills the disk. */
function fill(file: string): void {
  for (const size of [65_536, 4_096, 512, 1]) {
    const piece = Buffer.alloc(size);
    try {
      for (;;) appendFileSync(file, piece);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
    }
  }
}

describeNeeding("tmpfs", "a server whose disk is full", () => {
  it("is reported on /ready and with 503 for requests that store something, without paths, until space is free again", async () => {
    using disk = mountSmallDisk(24);
    await using platform = await startPlatform({ home: disk.path });
    const probe = await publish(platform, projects.probe);
    const ready = () => platform.ask("GET", "/ready");
    expect(await ready()).toMatchObject({ status: 200, store: "ok", disk: "ok" });

    fill(join(disk.path, "filler"));
    await vi.waitFor(async () => expect(await ready()).toMatchObject({ status: 503, disk: "full" }), { timeout: 5_000 });
    const asked: (() => Promise<Answer>)[] = [
      () => platform.ask("PUT", `/bundle/${digest}`, archive()),
      () => platform.ask("POST", "/token", { owner: "ada" }),
      () => platform.ask("POST", "/env-instance", { envName: probe }),
      () => platform.ask("POST", "/env-service", { envName: probe }),
      () => platform.ask("POST", "/env/other/1.0.0/sign"),
      () => platform.ask("POST", "/env", { name: "other", version: "1.0.0", codeUrl: "x".repeat(10_000) }),
    ];
    for (const ask of asked) {
      const { status, message, error, headers } = await ask();
      expect([status, error, message]).toEqual([503, expect.objectContaining({ code: "store.unavailable", retryable: true }), message]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(message).not.toContain(disk.path);
      expect(message).not.toMatch(/\/tmp|blobs|ENOSPC/);
    }
    const batch = await platform.ask("POST", "/env-instance/batch", { envName: probe, count: 2 });
    expect(batch.data.items.map((item: { error: { code: string } }) => item.error.code)).toEqual(Array(2).fill("store.unavailable"));
    expect(JSON.stringify(batch.data)).not.toContain(disk.path);
    expect(JSON.stringify(await ready())).not.toContain(disk.path);
    // Requests that store nothing still succeed.
    expect((await platform.ask("GET", "/env")).status).toBe(200);

    rmSync(join(disk.path, "filler"));
    await vi.waitFor(async () => expect(await ready()).toMatchObject({ status: 200, disk: "ok" }), { timeout: 5_000 });
    const { id } = await platform.create(probe);
    await platform.demand("DELETE", `/env-instance/${id}`);
  }, 60_000);
});
