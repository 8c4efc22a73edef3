import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { formatProblem } from "./problem.ts";
import { checkThreats } from "./threats.ts";

const source = `
export const MAX_BYTES = 32 * MEBIBYTE;
const MEBIBYTE = 1_024 ** 2;
interface Limits { readonly maxDepth: number; readonly maxWaiting: number }
export const limits: Limits = { maxDepth: 200, maxWaiting: 64 };
const UNSENT_BYTES = 1 << 20;
const PAUSE_MS = 10 * 60_000;
`;
const tests = `
describe("a sender", () => {
  it.each(sizes)("of %s is refused", async () => {});
});
describeNeeding("runc", "with runc", () => {});
it(
  "is on a line of its own",
  async () => {},
);
const text = "is no test";
`;

async function problemsOf(...rows: readonly string[]): Promise<string[]> {
  const table = ["| Who sends what | Limit | Test |", "| --- | --- | --- |", ...rows].join("\n");
  using tree = temporaryTree({
    "docs/guides/threats.md": table,
    "docs/reference/settings.md":
      "| `places` | `--places <a\\|b>` | `AENV_PLACES` | `20000` | x |\n| `rest` | `--rest` | `AENV_REST` | `30s` | x |",
    "a/source.ts": source,
    "a/some.test.ts": tests,
  });
  return (await checkThreats(tree.path)).map(formatProblem);
}

const test = '[some](../../a/some.test.ts) "of %s is refused", "a sender"';

it("accepts tests, constants and defaults as they are", async () => {
  expect(
    await problemsOf(
      `| x | [32 MiB](../../a/source.ts "MAX_BYTES"), [200 levels](../../a/source.ts "maxDepth"), [64](../../a/source.ts "maxWaiting") | ${test} |`,
      `| x | [10 min](../../a/source.ts "PAUSE_MS"), [1 MiB](../../a/source.ts "UNSENT_BYTES") | [some](../../a/some.test.ts) "with runc", "is on a line of its own" |`,
      `| x | 20,000 ([\`places\`](../reference/settings.md)), 30 s ([\`rest\`](../reference/settings.md)) | ${test} |`,
    ),
  ).toEqual([]);
});

it("reports a test that does not exist under its name, a link without a name, and a row without a test", async () => {
  expect(
    await problemsOf(
      '| x | y | [some](../../a/some.test.ts) "is no test" |',
      "| x | y | [some](../../a/some.test.ts) |",
      "| x | y | none |",
    ),
  ).toEqual([
    "docs/guides/threats.md:3: '../../a/some.test.ts' has no test \"is no test\"",
    "docs/guides/threats.md:4: '../../a/some.test.ts' is linked without the name of a test: write \"…\" after it",
    "docs/guides/threats.md:5: the row names no test",
  ]);
});

it("reports a figure that is not that of the constant or of the default", async () => {
  expect(
    await problemsOf(
      `| x | [31 MiB](../../a/source.ts "MAX_BYTES"), [7](../../a/source.ts "NONE") | ${test} |`,
      `| x | 2,000 ([\`places\`](../reference/settings.md)), 30 s ([\`nap\`](../reference/settings.md)) | ${test} |`,
    ),
  ).toEqual([
    "docs/guides/threats.md:3: says '31 MiB', and MAX_BYTES of '../../a/source.ts' is 33554432",
    "docs/guides/threats.md:3: NONE of '../../a/source.ts' is no figure that this check can read",
    "docs/guides/threats.md:4: says '2,000', and the default of 'places' is 20000",
    "docs/guides/threats.md:4: the default of 'nap' is no figure that this check can read",
  ]);
});
