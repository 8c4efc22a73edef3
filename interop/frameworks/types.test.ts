import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeNeeding } from "@aenv/testing";
import { expect, it } from "vitest";

describeNeeding("frameworks", "the adapters' types", () => {
  it("are compatible with the frameworks' types", { timeout: 120_000 }, () => {
    const project = fileURLToPath(new URL("..", import.meta.url));
    const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "--noEmit", "-p", project], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});
