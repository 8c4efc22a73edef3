import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("serves ten thousand instances in one process, each with its own state, and leaks none", { timeout: 180_000 }, async () => {
  const script = fileURLToPath(new URL("./fixtures/many-instances.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script, "10000"]);
  const { wrong, live, left, before, after } = JSON.parse(stdout);
  expect({ wrong, live, left }).toEqual({ wrong: 0, live: 10_000, left: 0 });
  expect(after / before).toBeLessThan(1.1);
});
