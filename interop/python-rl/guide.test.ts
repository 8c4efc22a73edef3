import { describeNeeding, torchPythonPath } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { blocksIn, readGuide } from "./guide.ts";
import { clientPath, type PythonOptions, runPython } from "./python.ts";

const guide = readGuide("frameworks");

/** The Python of one section of the guide. */
function codeOf(section: string): string {
  const text = guide.split(/^## /m).find((one) => one.startsWith(`${section}\n`)) ?? "";
  const blocks = blocksIn(text, "python");
  expect(blocks.length, `Python under "${section}"`).toBeGreaterThan(0);
  return blocks.join("\n");
}

async function runSection(section: string, options: PythonOptions = {}): Promise<void> {
  await using platform = await startPlatform();
  await publish(platform, projects.echo);
  const variables = { ...options.variables, AENV_SYSTEM_URL: platform.controlUrl };
  expect(await runPython("run_code.py", [codeOf(section)], { ...options, variables })).toBe("ran");
}

describeNeeding("python-rl", "the guide to RL frameworks", () => {
  it.each(["Gymnasium", "PettingZoo"])("has code for %s that runs as printed", { timeout: 60_000 }, (section) => runSection(section));
});

describeNeeding("torch", "the guide to learners on torch", () => {
  it("has code for Stable-Baselines3 that runs as printed", { timeout: 600_000 }, () =>
    runSection("Stable-Baselines3 and RLlib", { python: torchPythonPath, variables: { PYTHONPATH: clientPath }, timeoutMs: 500_000 }),
  );
});
