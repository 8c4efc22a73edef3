import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { formatRef } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import type { Command } from "commander";
import { failureBlock } from "../block.ts";
import { callExample, fetchOffer, type Offer, offeredNames, offerTable } from "../catalogue.ts";
import { requireInspector, startInspector } from "../dev/inspector.ts";
import { type DevEvent, DevServer } from "../dev/server.ts";
import { failureAsJson } from "../failure.ts";
import { examples } from "../help.ts";
import { integer } from "../option.ts";
import { type Project, readProject } from "../project.ts";
import { during } from "../spinner.ts";
import { type Terminal, type Voice, voiceOf } from "../terminal.ts";

interface Options {
  readonly workDir: string;
  readonly host: string;
  readonly port: number;
  readonly quiet?: boolean;
  readonly inspector?: boolean;
  readonly inspectorPort: number;
  readonly json?: boolean;
}

/** Where the original's clients look for an environment. */
const USUAL_PORT = 8081;

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Checks the project, serves its environment, and serves it anew whenever a file changes. Ctrl-C stops it.")
    .option("-w, --work-dir <folder>", "the project", ".")
    .option("-p, --port <number>", "where to listen; 0 takes any free port", integer(0, 65_535), USUAL_PORT)
    .option("--host <address>", "the address to listen on; 0.0.0.0 lets other machines in", "127.0.0.1")
    .option("-q, --quiet", "no table and no advice, only what goes wrong")
    .option("--inspector", "start the MCP Inspector beside it, if it is installed")
    .option("--inspector-port <number>", "where the Inspector's page is", integer(1, 65_535), 6274)
    .option("--json", "one JSON line an event on stdout")
    .addHelpText("after", examples("aenv run", "aenv run --port 0 --json", "aenv run --work-dir ./my-env --inspector"))
    .action((options: Options) => run(options, terminal));
}

async function run(options: Options, terminal: Terminal): Promise<void> {
  const voice = voiceOf(terminal, options.json === true);
  const project = readProject(options.workDir, terminal.cwd);
  const inspectorCommand = options.inspector ? requireInspector(project.root) : null;
  const stop = terminal.stopSignal();
  const narrator = new Narrator(voice, terminal, options);
  const { server, port } = await during(terminal, `Starting ${project.config.name}`, () =>
    DevServer.start(project, { ...options, onEvent: (event) => narrator.onEvent(event) }, stop),
  );
  let inspector: ChildProcess | undefined;
  try {
    await narrator.open(project, port);
    if (inspectorCommand !== null) {
      inspector = startInspector(inspectorCommand, narrator.mcpUrl, options.inspectorPort, (line) => narrator.inspector(line));
    }
    if (!stop.aborted) await once(stop, "abort");
    narrator.stopping();
  } finally {
    inspector?.kill();
    await server.close();
  }
  voice.event({ event: "stopped" });
}

/** Tells what happens: to people as it suits them, to programs as one JSON line each. */
class Narrator {
  readonly #voice: Voice;
  readonly #terminal: Terminal;
  readonly #options: Options;
  #url = "";
  #offer: Offer = { tools: [], functions: [], rewards: [] };
  #changedAt = 0;
  #changed: readonly string[] = [];

  constructor(voice: Voice, terminal: Terminal, options: Options) {
    this.#voice = voice;
    this.#terminal = terminal;
    this.#options = options;
  }

  get mcpUrl(): string {
    return `${this.#url}/mcp`;
  }

  async open(project: Project, port: number): Promise<void> {
    const host = ["0.0.0.0", "::"].includes(this.#options.host) ? "127.0.0.1" : this.#options.host;
    this.#url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.#offer = await this.#fetchOffer(project);
    const { name, version } = project.config;
    this.#voice.event({ event: "ready", name, version, url: this.#url, mcpUrl: this.mcpUrl, port, ...this.#offer });
    if (this.#options.quiet) this.#voice.say(`${formatRef({ name, version })} ${this.#url}`);
    else this.#welcome(project, port);
  }

  onEvent(event: DevEvent): void {
    switch (event.event) {
      case "changed":
        this.#changedAt = performance.now();
        this.#changed = event.files;
        this.#voice.event(event);
        return;
      case "serving":
        // The first one is told by `open`, when the port is known.
        if (this.#url !== "") this.#reloaded(event.project);
        return;
      case "failed":
        this.#voice.event({ event: "failed", ...failureAsJson(event.failure), isStillServing: event.isStillServing });
        this.#complain(failureBlock(event.failure, this.#terminal.stderr.colors, this.#terminal.cwd));
        this.#complain(event.isStillServing ? "  The version before it goes on serving." : "  Nothing is served until it loads.");
        return;
      case "crashed":
        this.#voice.event(event);
        this.#complain(
          `${this.#terminal.stderr.colors.red("✖")} the environment crashed (${event.how}); it starts again when you save a file`,
        );
        return;
      case "output":
        this.#voice.event(event);
        if (!this.#voice.isJson) this.#terminal[event.stream].write(`${event.line}\n`);
        return;
    }
  }

  inspector(line: string): void {
    this.#voice.event({ event: "inspector", line });
    this.#voice.say(`${this.#voice.people.colors.magenta("inspector")} ${line}`);
  }

  stopping(): void {
    this.#voice.event({ event: "stopping" });
    if (!this.#options.quiet) this.#voice.say(this.#voice.people.colors.dim("\nStopping; calls in flight may finish."));
  }

  async #reloaded(project: Project): Promise<void> {
    const ms = Math.round(performance.now() - this.#changedAt);
    const files = this.#changed;
    const before = this.#offer;
    try {
      this.#offer = await this.#fetchOffer(project);
    } catch {
      // It crashed at once, which is told by itself.
      return;
    }
    const { name, version } = project.config;
    this.#voice.event({ event: "reloaded", name, version, files, ms, ...this.#offer });
    if (this.#options.quiet) return;
    const { colors } = this.#voice.people;
    const more = files.length > 1 ? ` and ${files.length - 1} more` : "";
    this.#voice.say(`${colors.green("✔")} ${time()} reloaded ${files[0]}${more} ${colors.dim(`in ${ms} ms`)}`);
    const [old, now] = [offeredNames(before), offeredNames(this.#offer)];
    for (const each of now) if (!old.includes(each)) this.#voice.say(colors.green(`  + ${each}`));
    for (const each of old) if (!now.includes(each)) this.#voice.say(colors.red(`  - ${each}`));
  }

  async #fetchOffer({ config }: Project): Promise<Offer> {
    return Environment.use(formatRef(config), { instanceUrl: this.#url }, fetchOffer);
  }

  #welcome({ config, root }: Project, port: number): void {
    const { people } = this.#voice;
    const { colors } = people;
    const say = (text = "") => this.#voice.say(text);
    const line = (title: string, text: string) => say(`  ${colors.dim(title.padEnd(12))}${text}`);
    say(`${colors.green("✔")} ${colors.bold(formatRef(config))} is served at ${colors.cyan(this.#url)}`);
    say();
    say(offerTable(this.#offer, people));
    say();
    line("MCP client", colors.cyan(this.mcpUrl));
    line("Trainer", `${colors.cyan(this.#url)}  ${colors.dim("/health  /functions/list  /task/reward")}`);
    if (port === USUAL_PORT) line("SDK", `DUMMY_INSTANCE_IP=http://localhost  ${colors.dim(`new Environment("${config.name}")`)}`);
    else line("SDK", `new Environment("${config.name}", { instanceUrl: "${this.#url}" })`);
    const [tool] = this.#offer.tools;
    const address = port === USUAL_PORT ? "" : ` --url ${this.#url}`;
    if (tool !== undefined) line("Shell", `aenv call ${callExample(tool)}${address}  ${colors.dim(`or: aenv call --list${address}`)}`);
    say();
    say(colors.dim("  For the configuration of an MCP client:"));
    const snippet = JSON.stringify({ mcpServers: { [config.name]: { type: "http", url: this.mcpUrl } } }, null, 2);
    say(snippet.replace(/^/gm, "  "));
    say();
    say(colors.dim(`Watching ${root}. Ctrl-C stops.`));
  }

  #complain(text: string): void {
    this.#terminal.stderr.write(`${text}\n`);
  }
}

function time(): string {
  return new Date().toTimeString().slice(0, 8);
}
