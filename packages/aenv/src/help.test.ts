import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { commandNames, createProgram } from "./cli.ts";
import { exitCodes } from "./terminal/exit-codes.ts";
import { aenv, silentTerminal } from "./testing/cli.ts";

const docs = (path: string) => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), "utf8");
const guide = docs("guides/command-line.md");
const reference = docs("reference/commands.md");

/** Every command and subcommand with its words: `["instance", "list"]`. */
async function everyCommand(): Promise<{ words: string[]; command: Command }[]> {
  const found: { words: string[]; command: Command }[] = [];
  const walk = (words: string[], command: Command) => {
    found.push({ words, command });
    for (const sub of command.commands) if (sub.name() !== "help") walk([...words, sub.name()], sub);
  };
  for (const name of commandNames) {
    const program = await createProgram([name], silentTerminal(80));
    const command = program.commands.find((one) => one.name() === name);
    if (command !== undefined) walk([name], command);
  }
  return found;
}

const commands = await everyCommand();
const cases = commands.map(({ words, command }) => [words.join(" "), { words, command }] as const);

async function helpOf(words: readonly string[]): Promise<string> {
  return (await aenv([...words, "--help"])).stdout;
}

describe("the help of every command", () => {
  it.each(cases)("has examples that the command accepts: %s", async (_, { words }) => {
    const lines = [...(await helpOf(words)).matchAll(/^ {2}\$ aenv (.*)$/gm)].map(([, line = ""]) => line);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) await demandParses(shellWords(line));
  });

  it.each(cases)("has descriptions that fit a terminal of 80 columns: %s", (_, { command }) => {
    expect(
      command
        .helpInformation()
        .split("\n")
        .filter((line) => line.length > 80),
    ).toEqual([]);
  });

  it.each(cases)("shows no default in milliseconds or bytes: %s", async (_, { words }) => {
    // Wrapped lines are joined: a default may be on the next one.
    expect((await helpOf(words)).replace(/\s+/g, " ")).not.toMatch(/\((?:default: )?\d{8,}\)|\(default: \d{5,}\)/);
  });
});

describe("the reference page", () => {
  const sections = new Map(reference.split(/^### aenv /m).map((text) => [text.split(/\s/, 1)[0] ?? "", text]));

  it.each(commandNames)("has every option of %s", (name) => {
    const own = commands.filter(({ words }) => words[0] === name).flatMap(({ command }) => command.options);
    expect(own.filter(({ long, hidden }) => !hidden && !sections.get(name)?.includes(long ?? "")).map(({ long }) => long)).toEqual([]);
  });
});

describe("the guide", () => {
  it.each(commandNames.filter((name) => name !== "instances"))("links to the reference of %s", (name) => {
    expect(guide).toMatch(new RegExp(`\\(\\.\\./reference/commands\\.md#aenv-${name}\\)`));
  });

  it.each(guide.split(/^## /m).slice(1))("names only options that the commands of a section have: ## %s", (section) => {
    const named = new Set(section.match(/[a-z]+/g));
    const taken = commands.filter(({ words: [name = ""] }) => named.has(name)).flatMap(({ command }) => command.options);
    const known = new Set(["--help", ...taken.map(({ long }) => long)]);
    const mentioned = [...section.matchAll(/`(?:-\w, )?(--[a-z][a-z-]*)[^`]*`/g)].map(([, flag = ""]) => flag);
    expect(mentioned.filter((flag) => !known.has(flag))).toEqual([]);
  });

  it("lists the exit codes", () => {
    const rows = [...guide.matchAll(/^\| (\d+) +\| (.*?) +\|$/gm)].map(([, code, meaning]) => ({ code: Number(code), meaning }));
    expect(rows).toEqual(Object.values(exitCodes));
  });
});

/** Parses a command line with every action left out. */
async function demandParses(argv: readonly string[]): Promise<void> {
  const program = await createProgram(argv, silentTerminal());
  const quiet = (command: Command) => {
    if (command.commands.length === 0) command.action(() => undefined);
    for (const one of command.commands) quiet(one);
  };
  quiet(program);
  await program.parseAsync([...argv], { from: "user" });
}

/** The words that a shell would pass on, without redirections. */
function shellWords(line: string): string[] {
  const words = [...line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
  const redirected = words.indexOf("<");
  return redirected < 0 ? words : words.slice(0, redirected);
}
