import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { filesUsedBy, readUses, testsOf } from "./dependents.ts";
import { leftOut, reachedBy } from "./reached-by.ts";

describe("the components that a change reaches", async () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const uses = await readUses(root);
  const tests = testsOf(uses).map((path) => ({ path, source: readFileSync(`${root}/${path}`, "utf8") }));

  it.each(Object.entries(reachedBy))("%s: the table has every file that its tests use", (component, paths) => {
    const needing = tests.filter(({ source }) => new RegExp(`describeNeeding\\(\\s*"${component}"`).test(source));
    const used = [
      ...filesUsedBy(
        uses,
        needing.map(({ path }) => path),
      ),
    ];
    expect(used.filter((path) => !paths.test(path))).toEqual([]);
  });

  it("are all for a change of a package, and those of its own folder for a trainer's", () => {
    expect(leftOut(["packages/server/src/server.ts"])).toEqual([]);
    expect(leftOut(["interop/harbor/run_job.py"])).not.toContain("harbor");
    expect(leftOut(["interop/harbor/run_job.py"])).toContain("kubernetes");
    expect(leftOut(["CHANGELOG.md"])).toEqual(Object.keys(reachedBy));
  });
});
