import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { DiskProbe, diskError, diskProblemOf } from "./disk.ts";

const errno = (code: string, path?: string) => Object.assign(new Error(`${code}: open '/srv/aenv/x'`), { code, ...(path && { path }) });

describe("diskProblemOf", () => {
  it("finds a disk problem at any depth of causes, and nothing else", () => {
    expect(diskProblemOf(errno("ENOSPC"))).toBe("full");
    expect(diskProblemOf(new Error("a", { cause: new Error("b", { cause: errno("EROFS") }) }))).toBe("not writable");
    expect(diskProblemOf(errno("EACCES", "/srv/aenv/x"))).toBe("not writable");
    expect([errno("EPERM"), errno("ECONNRESET"), new Error("full"), "ENOSPC", null].map(diskProblemOf)).toEqual(Array(5).fill(null));
    const ring = new Error("ring");
    ring.cause = ring;
    expect(diskProblemOf(ring)).toBeNull();
  });

  it("becomes an error without paths", () => {
    const error = diskError("full", errno("ENOSPC"));
    expect(error).toMatchObject({ code: "store.unavailable", status: 503, retryable: true });
    expect(error.message).not.toContain("/srv");
  });
});

describe("a disk probe", () => {
  it("checks whether files can be written, and leaves none behind", async () => {
    using tree = temporaryTree();
    mkdirSync(join(tree.path, "home"));
    expect(await new DiskProbe([join(tree.path, "home")]).check()).toBeNull();
    expect(await new DiskProbe([join(tree.path, "home"), join(tree.path, "none")]).check()).toBe("not writable");
  });
});
