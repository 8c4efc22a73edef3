import { existsSync, rmSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { parseName } from "@aenv/contract";
import type { Command } from "commander";
import { bundleCode, ENVIRONMENT_FILE } from "../../bundle/code.ts";
import { examples } from "../../options/examples.ts";
import { collect } from "../../options/pairs.ts";
import { addPlatformOptions, type PlatformOptions } from "../../platform/platform.ts";
import { getBenchmark, loadDataModule, type PreparedData } from "../../project/benchmarks.ts";
import { LOAD_TIMEOUT_MS } from "../../project/load-errors.ts";
import { assertVersion, type Project, readProject } from "../../project/project.ts";
import { isEmptyOrMissing, writeFiles } from "../../scaffold/project-files.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { warn } from "../../terminal/warning.ts";
import { push } from "../push.ts";

interface Options extends PlatformOptions {
  readonly name?: string;
  readonly domain?: readonly string[];
  readonly version: string;
  readonly workDir: string;
  readonly push?: boolean;
  readonly json?: boolean;
}

/** The environment that plays the tasks. */
const PLAYER = "terminal-bench";
const TASKS = "tasks";
const CODE = "player";
const MAX_NAME = 63;

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("make an environment of Harbor tasks")
    .description(
      "Makes one environment project of all tasks of a dataset: Harbor or Terminal-Bench, as a folder of tasks, a registry file or a dataset.toml. The project contains the tasks and the code that plays them, and is run, played and published like any other.",
    )
    .argument("<dir>", "the dataset")
    .option("--name <name>", "the environment's name; made of the dataset's if not given")
    .option("--domain <name>", "only this dataset of a registry file, or this task of others; may be repeated", collect)
    .option("-v, --version <version>", "its version", "1.0.0")
    .option(
      "-w, --work-dir <folder>",
      "the folder in which the project's folder is created; it has the environment's name, or ends with -env if the tasks are there",
      ".",
    )
    .option("--push", "publish it")
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv import harbor ./my-tasks",
        "aenv import harbor ./my-tasks/dataset.toml --name my-tasks --push",
        "aenv import harbor registry.json --domain my-tasks@1.0",
      ),
    )
    .action((dir: string, options: Options) => importHarbor(dir, options, terminal));
}

async function importHarbor(dir: string, options: Options, terminal: Terminal): Promise<void> {
  assertVersion(options.version);
  const printer = createPrinter(terminal, options.json === true);
  const { colors } = printer.output;
  const from = resolve(terminal.cwd, dir);
  if (!existsSync(from)) throw new Failure(`there is no ${from}`, { exit: "usage", hint: "Name a folder of tasks." });
  const name = parseName(options.name ?? nameOf(from));
  const folder = folderFor(resolve(terminal.cwd, options.workDir, name), from);
  if (!isEmptyOrMissing(folder))
    throw new Failure(`the folder ${folder} is not empty`, { hint: "Choose another name with --name, or another folder with --work-dir." });

  const player = readProject(PLAYER, terminal.cwd);
  const { facts = [], warnings = [] } = await withSpinner(terminal, `Reading ${from}`, () =>
    writeProject(from, folder, name, options, player),
  );
  printer.print(`${colors.green("✔")} Created ${colors.bold(name)} in ${colors.cyan(relative(terminal.cwd, folder) || folder)}`);
  for (const [fact, value] of facts) printer.print(`  ${colors.dim(`${fact}: ${value}`)}`);
  for (const warning of warnings) warn(terminal, warning);
  if (options.push === true) {
    await push({ ...options, workDir: folder, version: options.version, verify: true, loadTimeout: LOAD_TIMEOUT_MS }, terminal);
    return;
  }
  printer.json({ name, version: options.version, folder, facts: Object.fromEntries(facts), warnings });
  printer.print();
  printer.print("Next:");
  const steps = [
    imagesCommand(join(folder, TASKS)),
    `aenv rollout ${folder} --engine oci --agent oracle`,
    `aenv push --work-dir ${folder}`,
  ];
  for (const step of steps) printer.print(`  ${colors.cyan(step)}`);
}

/** Beside the tasks, if they are in a folder of the same name. */
function folderFor(folder: string, from: string): string {
  return from === folder || from.startsWith(`${folder}/`) ? `${folder}-env` : folder;
}

/** If it fails, nothing is left. */
async function writeProject(from: string, folder: string, name: string, options: Options, player: Project): Promise<PreparedData> {
  try {
    const { prepareData } = await loadDataModule(getBenchmark(PLAYER, folder));
    const prepared = await prepareData({ from, to: join(folder, TASKS), ...(options.domain && { domains: options.domain }) });
    const code = (await bundleCode(player)).filter(({ path }) => path !== "main.js");
    const { deployConfig = {} } = player.config;
    const config = {
      name,
      version: options.version,
      description: `The tasks of ${basename(from)}.`,
      tags: ["terminal", "harbor"],
      main: `${CODE}/${ENVIRONMENT_FILE}`,
      buildConfig: { data: [TASKS] },
      deployConfig,
    };
    const files = new Map<string, string | Uint8Array>(code.map(({ path, bytes }) => [`${CODE}/${path}`, bytes]));
    files.set("config.json", json(config)).set("package.json", json({ name, private: true, type: "module" }));
    files.set("README.md", readme(name, prepared, player));
    writeFiles(folder, files);
    return prepared;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    if (error instanceof Failure || (error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new Failure((error as Error).message, { hint: "Nothing was written.", cause: error });
  }
}

/** A valid name from that of a folder or a file. */
function nameOf(path: string): string {
  const base = /\.(?:json|toml)$/.test(path) ? basename(resolve(path, "..")) : basename(path);
  const name = base
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return name.slice(0, MAX_NAME);
}

function readme(name: string, { facts = [] }: PreparedData, { config }: Project): string {
  return [
    `# ${name}`,
    "",
    `Tasks of another format, played by \`${config.name}\` ${config.version}, whose code is in \`${CODE}\`. Each task is a folder in \`${TASKS}\`.`,
    "",
    ...facts.map(([fact, value]) => `- ${fact}: ${value}`),
    "",
    "Its variables are those of terminal-bench. The images of the tasks must be there before: this builds those with a Dockerfile and pulls the others.",
    "",
    "```sh",
    imagesCommand(TASKS),
    "```",
    "",
  ].join("\n");
}

/** Builds images with a Dockerfile, and pulls the others. */
function imagesCommand(tasks: string): string {
  return `aenv bench images ${PLAYER} --from ${tasks} --build --pull --engine oci`;
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
