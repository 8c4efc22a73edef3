import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { Command } from "commander";
import { requireInspector, startInspector } from "../dev/inspector.ts";
import { DevOutput } from "../dev/output.ts";
import { DevServer } from "../dev/server.ts";
import { examples } from "../options/examples.ts";
import { collectPair } from "../options/pairs.ts";
import { integer } from "../options/values.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { readProject } from "../project/project.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options {
  readonly workDir: string;
  readonly host: string;
  readonly port: number;
  readonly loadTimeout: number;
  readonly use?: Readonly<Record<string, string>>;
  readonly quiet?: boolean;
  readonly inspector?: boolean;
  readonly inspectorPort: number;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Checks the project, serves its environment, and reloads it whenever a file changes. Ctrl-C stops it.")
    .option("-w, --work-dir <folder>", "the project, or the name of a built-in environment", ".")
    .option("-p, --port <number>", "the port to listen on; 0 uses any free port", integer(0, 65_535), 8081)
    .option("--host <address>", "the address to listen on; 0.0.0.0 allows access from other machines", "127.0.0.1")
    .addOption(loadTimeoutOption())
    .option(
      "--use <CHILD=PLACE>",
      "where a child of deployConfig.uses is: the path of its project, or the URL of an environment that is served; by default beside the project",
      collectPair,
    )
    .option("-q, --quiet", "print no table and no hints, only errors")
    .option("--inspector", "also start the MCP Inspector, if it is installed")
    .option("--inspector-port <number>", "the port of the Inspector's page", integer(1, 65_535), 6274)
    .option("--json", "print one line of JSON per event")
    .addHelpText(
      "after",
      examples("aenv run", "aenv run --port 0 --json", "aenv run --work-dir ./my-env --inspector", "aenv run --use judge=../judge"),
    )
    .action((options: Options) => run(options, terminal));
}

async function run(options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const project = readProject(options.workDir, terminal.cwd);
  const inspectorCommand = options.inspector ? requireInspector(project.root, terminal.env.PATH ?? "") : null;
  const stop = terminal.stopSignal();
  const output = new DevOutput(printer, terminal, options);
  const started = await withSpinner(terminal, `Starting ${project.config.name}`, () =>
    DevServer.start(project, { ...options, use: placesFrom(options.use, terminal.cwd), onEvent: (event) => output.onEvent(event) }, stop),
  ).catch((error: unknown) => {
    if (stop.aborted) return null;
    throw error;
  });
  if (started === null) return;
  const { server, port } = started;
  let inspector: ChildProcess | undefined;
  try {
    await output.open(project, port);
    if (inspectorCommand !== null) {
      inspector = startInspector(inspectorCommand, output.mcpUrl, options.inspectorPort, (line) => output.inspector(line));
    }
    if (!stop.aborted) await once(stop, "abort");
    output.stopping();
  } finally {
    inspector?.kill();
    await server.close();
  }
  printer.jsonLine({ event: "stopped" });
}

/** Paths are relative to where the command runs. */
function placesFrom(use: Readonly<Record<string, string>> = {}, cwd: string): Record<string, string> {
  return Object.fromEntries(Object.entries(use).map(([name, place]) => [name, /^https?:\/\//.test(place) ? place : resolve(cwd, place)]));
}
