import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { aenv } from "aenvironment/cli-tests";
import { describe, expect, it } from "vitest";
import { findSnippets } from "./check/snippets.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const snippetsOf = (path: string) => findSnippets(readFileSync(root + path, "utf8")).map((snippet) => snippet.code);

/** Runs code as a file at the repository's root. */
function run(code: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["--input-type=module-typescript", "--eval", code], { cwd: root, encoding: "utf8" });
}

const helpOf = async (...command: string[]) => (await aenv([...command, "--help"])).stdout;

describe("the README", () => {
  it("opens with a dozen lines of code that run", () => {
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
  it("define environments that can be served", () => {
    const definitions = snippetsOf("docs/guides/write-an-environment.md").filter((code) => code.includes("export default"));
    expect(definitions.length).toBeGreaterThan(2);
    for (const code of definitions) {
      const serving = 'import { serve as serveIt } from "aenvironment";\nawait (await serveIt(environment, { port: 0 })).close();\n';
      expect(run(code.replace("export default", "const environment =") + serving)).toMatchObject({ status: 0, stderr: "" });
    }
  });
});

describe("the reference of the command line", async () => {
  const reference = readFileSync(`${root}docs/reference/commands.md`, "utf8");
  const commandsOf = async (...command: string[]) => {
    const list = /Commands:\n([\s\S]*?)\n\n/.exec(await helpOf(...command))?.[1] ?? "";
    return [...list.matchAll(/^ {2}([\w-]+)/gm)].map((found) => found[1] as string).filter((name) => name !== "help");
  };
  const optionsOf = async (...command: string[]) =>
    [...(await helpOf(...command)).matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map((found) => found[1] as string);
  const sectionOf = (...command: string[]) =>
    new RegExp(`^#{3,4} aenv ${command.join(" ")}\n[\\s\\S]*?(?=^#+ |$(?![\\s\\S]))`, "m").exec(reference)?.[0] ?? "";

  it.each(await commandsOf())(
    "has every subcommand and option of `aenv %s`",
    async (name) => {
      for (const command of [[name], ...(await commandsOf(name)).map((subcommand) => [name, subcommand])]) {
        const options = await optionsOf(...command);
        expect(options).toContain("--help");
        for (const option of options) expect(sectionOf(...command)).toContain(option);
      }
    },
    60_000,
  );
});

describe("the guide to the command line", () => {
  const guide = readFileSync(`${root}docs/guides/command-line.md`, "utf8");

  it("has the options that commands share", () => {
    for (const option of ["--system-url", "--api-key", "--output", "--json"]) expect(guide).toContain(`\`${option}`);
  });

  it("has the exit codes that the command ends with", async () => {
    const help = await helpOf();
    const codes = [...help.matchAll(/^ {2}(\d+) +(.+)$/gm)].map((found) => [found[1], found[2]]);
    expect(codes.length).toBeGreaterThan(3);
    const documented = [...guide.matchAll(/^\| (\d+) +\| (.+?) +\|$/gm)].map((found) => [found[1], found[2]]);
    expect(documented).toEqual(codes);
  });
});
