import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseName } from "@aenv/contract";
import { type Command, Option } from "commander";
import { examples } from "../options/examples.ts";
import { assertVersion } from "../project/project.ts";
import { isMachinesNodeTooOld } from "../scaffold/machine-node.ts";
import { ownTarball } from "../scaffold/own-tarball.ts";
import { isEmptyOrMissing, projectFiles, type Template, templates, writeFiles } from "../scaffold/project-files.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";

interface Options {
  readonly template: Template;
  readonly version: string;
  readonly workDir: string;
  readonly force?: boolean;
  readonly configOnly?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  const kinds = Object.entries(templates).map(([name, { does }]) => `${name} (${does})`);
  command
    .description("Creates an environment project in a folder of its name. Works offline.")
    .argument("<name>", "the environment's name: lower-case letters, digits and '-'")
    .addOption(new Option("-t, --template <template>", kinds.join("; ")).choices(Object.keys(templates)).default("default"))
    .option("-v, --version <version>", "the first version", "1.0.0")
    .option("-w, --work-dir <folder>", "the folder in which the project's folder is created", ".")
    .option("--force", "write into a folder that is not empty; other files stay")
    .option("--config-only", "write only config.json, directly into the work-dir")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv init my-env", "aenv init shop --template stateful", "aenv init my-env --config-only"))
    .action((name: string, options: Options) => init(name, options, terminal));
}

async function init(givenName: string, options: Options, terminal: Terminal): Promise<void> {
  const name = parseName(givenName);
  const { version, template } = options;
  assertVersion(version);
  const printer = createPrinter(terminal, options.json === true);
  const { colors } = printer.output;
  const workDir = resolve(terminal.cwd, options.workDir);
  if (options.configOnly) {
    const file = join(workDir, "config.json");
    if (existsSync(file) && !options.force) throw new Failure(`${file} already exists`, { hint: "Overwrite it with --force." });
    writeFiles(workDir, new Map([["config.json", `${JSON.stringify({ name, version, description: "" }, null, 2)}\n`]]));
    printer.json({ name, version, folder: workDir, files: ["config.json"] });
    printer.print(`${colors.green("✔")} Wrote ${file}.`);
    return;
  }

  const folder = join(workDir, name);
  if (!isEmptyOrMissing(folder) && !options.force) {
    throw new Failure(`the folder ${folder} is not empty`, { hint: "Choose another name, or write into it with --force." });
  }
  const bringsNode = isMachinesNodeTooOld(terminal.env.PATH);
  const tarball = await ownTarball();
  const files = projectFiles({ name, version, template, bringsNode, tarball });
  writeFiles(folder, files);

  const paths = [...files.keys()];
  printer.json({ name, version, template, folder, files: paths });
  printer.print(`${colors.green("✔")} Created ${colors.bold(name)}.`);
  printer.print();
  printer.print(tree(name, paths, colors));
  printer.print();
  if (tarball !== null) {
    printer.print(`It uses aenvironment from ${tarball.name}, which is copied into it.`);
    printer.print();
  }
  printer.print("Next:");
  const near = relative(terminal.cwd, folder);
  const path = near.startsWith("../..") ? folder : near;
  const steps = [`cd ${quoted(path)} && npm install`, "npx aenvironment rollout .", "npx aenvironment run"];
  for (const step of steps) printer.print(`  ${colors.cyan(step)}`);
}

/** Quoted for the shell, so that the line can be pasted. */
function quoted(path: string): string {
  return /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The project's files as a tree, folders first. */
function tree(name: string, paths: readonly string[], colors: Colors): string {
  const draw = (prefix: string, indent: string): string[] => {
    const here = paths.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
    const names = [...new Set(here.map((path) => (path.includes("/") ? `${path.split("/")[0]}/` : path)))];
    names.sort((a, b) => Number(b.endsWith("/")) - Number(a.endsWith("/")));
    return names.flatMap((each, index) => {
      const isLast = index === names.length - 1;
      const line = `${indent}${colors.dim(isLast ? "└─" : "├─")} ${each.endsWith("/") ? colors.blue(each) : each}`;
      return each.endsWith("/") ? [line, ...draw(prefix + each, `${indent}${isLast ? "   " : `${colors.dim("│")}  `}`)] : [line];
    });
  };
  return [`  ${colors.blue(`${name}/`)}`, ...draw("", "  ")].join("\n");
}
