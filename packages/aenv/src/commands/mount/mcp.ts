import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeMcpServer } from "@aenv/kit";
import type { Command } from "commander";
import { assertMountable, finishMount, type MountFolder, nameFrom, openFolder } from "../../mount/folder.ts";
import { prepareServer } from "../../mount/prepare-server.ts";
import { type MountedProject, mountedFiles } from "../../mount/project-text.ts";
import { readSecrets, reference, refusalHint } from "../../mount/secrets.ts";
import { parseServerCommand } from "../../mount/server-command.ts";
import { examples } from "../../options/examples.ts";
import { collect, collectPair } from "../../options/pairs.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options {
  readonly name?: string;
  readonly version: string;
  readonly workDir: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly secret?: readonly string[];
  readonly header?: Readonly<Record<string, string>>;
  readonly image?: string;
  readonly folder?: boolean;
  readonly allowPrivate?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("make an environment of an MCP server")
    .description(
      "Makes an environment project of an MCP server: a command after --, or a URL. A package of npm or PyPI is installed now, without running its scripts, and becomes part of the project, so that nothing is installed later. The server is started once, and its list of tools is pinned.",
    )
    .argument("<server...>", "`-- npx -y PACKAGE [args]`, `-- uvx PACKAGE [args]`, `-- node FILE [args]`, or a URL")
    .option("--name <name>", "the environment's name; made of the server's if not given")
    .option("-v, --version <version>", "its first version", "1.0.0")
    .option("-w, --work-dir <folder>", "the folder in which the project's folder is created", ".")
    .option("--env <KEY=VALUE>", "a variable of the server; may be repeated", collectPair)
    .option("--secret <NAME>", "a variable whose value is a secret: taken from your shell now, and on a platform from its secrets", collect)
    .option(
      "--header <NAME=VALUE>",
      `a header of each request to a URL, such as 'authorization=Bearer ${reference("TOKEN")}'; may be repeated`,
      collectPair,
    )
    .option("--image <image>", "the image of the server's sandbox; for Python, that of the version that installed it")
    .option("--folder", "ship the installed folder, not one file: for servers that read files of their package")
    .option("--allow-private", "allow a URL with a private or loopback address")
    .option("--force", "write into a folder that is not empty; other files stay")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv mount mcp -- npx -y @modelcontextprotocol/server-everything",
        "aenv mount mcp --name files -- npx -y @modelcontextprotocol/server-filesystem .",
        "aenv mount mcp -- uvx mcp-server-time --local-timezone UTC",
        `aenv mount mcp https://tools.example.com/mcp --secret TOKEN --header 'authorization=Bearer ${reference("TOKEN")}'`,
      ),
    )
    .action((server: readonly string[], options: Options) => mountMcp(server, options, terminal));
}

async function mountMcp(server: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const signal = terminal.stopSignal();
  const variables = readSecrets(options.secret ?? [], terminal);
  const step = <T>(label: string, work: () => Promise<T>) => withSpinner(terminal, label, work);
  const scratch = mkdtempSync(join(tmpdir(), "aenv-mount-"));
  try {
    const root = join(scratch, "project");
    const [first = ""] = server;
    const found = /^https?:\/\//i.test(first)
      ? await readUrl(server, options, variables, signal, step)
      : await readCommand(server, options, variables, { root, scratch, cwd: terminal.cwd }, { env: terminal.env, signal }, step);
    const folder: MountFolder = openFolder({ ...options, name: options.name ?? nameFrom(found.name) }, terminal.cwd);
    const project: MountedProject = {
      ...found,
      name: folder.name,
      version: options.version,
      secrets: options.secret ?? [],
      description: `The MCP server ${found.offer.pinned.server?.name || found.name}.`,
    };
    const files = mountedFiles(project);
    await finishMount(folder, files, root, { version: options.version, data: found.data }, terminal);
    const { tools } = found.offer.pinned;
    const { resources, prompts } = found.offer;
    const names = tools.map((tool) => tool.name);
    printer.json({
      name: folder.name,
      version: options.version,
      folder: folder.path,
      server: found.offer.pinned.server,
      tools: names,
      digest: found.offer.pinned.digest,
      resources,
      prompts,
      form: found.form,
    });
    const { colors } = printer.output;
    printer.print(`${colors.green("✔")} Mounted ${colors.bold(found.title)} as ${colors.bold(folder.name)}: ${found.form}.`);
    printer.print(`  ${colors.dim(`${tools.length} tools: ${names.slice(0, 8).join(", ")}${names.length > 8 ? ", …" : ""}`)}`);
    if (resources.length + prompts.length > 0) printer.print(`  ${colors.dim(`${resources.length} resources, ${prompts.length} prompts`)}`);
    folder.printNext(printer);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

type ProgramRunOptions = Parameters<typeof prepareServer>[0]["run"];
type Step = <T>(label: string, work: () => Promise<T>) => Promise<T>;

async function readCommand(
  words: readonly string[],
  options: Options,
  variables: Readonly<Record<string, string>>,
  folders: { readonly root: string; readonly scratch: string; readonly cwd: string },
  run: ProgramRunOptions,
  step: Step,
) {
  if (options.header !== undefined || options.allowPrivate === true)
    throw new Failure("--header and --allow-private are for servers with a URL", { exit: "usage" });
  const env = { ...options.env, ...Object.fromEntries(Object.keys(variables).map((name) => [name, reference(name)])) };
  const { image, folder: keepsFolder = false } = options;
  const server = parseServerCommand(words);
  const prepared = await prepareServer({ server, ...folders, env, variables, image, keepsFolder, run, step });
  assertMountable(prepared.offer);
  return { ...prepared, title: `${prepared.name}@${prepared.version}`, source: words.join(" ") };
}

async function readUrl(
  words: readonly string[],
  options: Options,
  variables: Readonly<Record<string, string>>,
  signal: AbortSignal,
  step: Step,
) {
  const [url = "", ...more] = words;
  if (more.length > 0 || !URL.canParse(url)) throw new Failure(`'${words.join(" ")}' is no URL`, { exit: "usage" });
  if (options.env !== undefined || options.image !== undefined || options.folder === true)
    throw new Failure("--env, --image and --folder are for servers that are started with a command", { exit: "usage" });
  const { host, hostname } = new URL(url);
  const connection = {
    url,
    ...(options.header !== undefined && { headers: options.header }),
    ...(options.allowPrivate === true && { allowPrivate: [host] }),
  };
  const offer = await step(`Asking ${host} for its tools`, () => describeMcpServer(connection, variables, signal)).catch((error: Error) => {
    throw new Failure(error.message, { hint: refusalHint(error), cause: error });
  });
  assertMountable(offer);
  const name = offer.pinned.server?.name || hostname;
  return { name, title: host, offer, options: connection, data: [], form: "reached by its URL", source: url };
}
