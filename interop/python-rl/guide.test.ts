import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describeNeeding } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { runPython } from "./python.ts";

const guide = readFileSync(fileURLToPath(new URL("../../docs/guides/frameworks.md", import.meta.url)), "utf8");

/** The Python of one section of the guide. */
function codeOf(section: string): string {
  const text = guide.split(/^## /m).find((one) => one.startsWith(`${section}\n`)) ?? "";
  const blocks = [...text.matchAll(/^```python\n(.*?)^```/gms)].map(([, code]) => code);
  expect(blocks.length, `Python under "${section}"`).toBeGreaterThan(0);
  return blocks.join("\n");
}

describeNeeding("python-rl", "the guide to RL frameworks", () => {
  it.each(["Gymnasium", "PettingZoo", "OpenEnv clients"])("has code for %s that runs as printed", { timeout: 150_000 }, async (section) => {
    await using platform = await startPlatform();
    await publish(platform, projects.echo);
    const variables = { AENV_SYSTEM_URL: platform.controlUrl };
    expect(await runPython("run_code.py", [codeOf(section).replaceAll("http://localhost:8081", platform.dataUrl)], { variables })).toBe(
      "ran",
    );
  });
});
