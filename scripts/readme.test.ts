import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findSnippets } from "./check/snippets.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const snippetsOf = (path: string) => findSnippets(readFileSync(root + path, "utf8")).map((snippet) => snippet.code);

/** Runs code as if it stood in a file at the repository's root. */
function run(code: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", code], { cwd: root, encoding: "utf8" });
}

describe("the README", () => {
  it("opens with a dozen lines of code that do what they say", () => {
    const [code = ""] = snippetsOf("README.md");
    expect(run(code)).toMatchObject({ status: 0, stdout: "1\n", stderr: "" });
    expect(code.split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(13);
  });

  it("has one sentence, the code and the two commands on its first screen", () => {
    const screen = readFileSync(`${root}README.md`, "utf8").split("\n").slice(0, 30).join("\n");
    expect(screen).toContain("npm install && npm run quickstart");
    expect(screen).toContain("npm install && npm test");
  });
});

describe("the guides", () => {
  it("test an environment with code that passes", () => {
    const code = snippetsOf("docs/guides/write-an-environment.md").at(-1) ?? "";
    expect(code).toContain("console.assert");
    expect(run(code)).toMatchObject({ status: 0, stdout: "", stderr: "" });
  });

  it("define environments that can be served", () => {
    const definitions = snippetsOf("docs/guides/write-an-environment.md").filter((code) => code.includes("export default"));
    expect(definitions.length).toBeGreaterThan(2);
    for (const code of definitions) {
      const serving = 'import { serve as serveIt } from "aenvironment";\nawait (await serveIt(environment, { port: 0 })).close();\n';
      expect(run(code.replace("export default", "const environment =") + serving)).toMatchObject({ status: 0, stderr: "" });
    }
  });
});
