import { formatRef, messageOf, type Task } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { type Catalogue, callExample, catalogueNames, catalogueTable, fetchCatalogue, fetchOffer } from "../project/catalogue.ts";
import type { Project } from "../project/project.ts";
import { failureAsJson } from "../terminal/failure.ts";
import { failureText } from "../terminal/failure-text.ts";
import type { Printer } from "../terminal/printer.ts";
import { countText, truncate } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn, warnProblems } from "../terminal/warning.ts";
import type { DevEvent } from "./server.ts";

/** The default port of the original's clients. */
const DEFAULT_PORT = 8081;

/** Timeout for asking a command what it offers. */
const OFFER_MS = 10_000;

type CatalogueWithTasks = Catalogue & { readonly tasks: readonly Task[] };

/** Prints the events of `aenv run`: as text, or as one line of JSON each. */
export class DevOutput {
  readonly #printer: Printer;
  readonly #terminal: Terminal;
  readonly #options: { readonly host: string; readonly quiet?: boolean };
  #url = "";
  #catalogue: CatalogueWithTasks = { tools: [], functions: [], rewards: [], tasks: [] };
  #changedAt = 0;
  #changed: readonly string[] = [];

  constructor(printer: Printer, terminal: Terminal, options: { readonly host: string; readonly quiet?: boolean }) {
    this.#printer = printer;
    this.#terminal = terminal;
    this.#options = options;
  }

  get mcpUrl(): string {
    return `${this.#url}/mcp`;
  }

  async open(project: Project, port: number): Promise<void> {
    const host = ["0.0.0.0", "::"].includes(this.#options.host) ? "127.0.0.1" : this.#options.host;
    this.#url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.#catalogue = await this.#fetchCatalogue(project);
    this.#warn(project);
    const { name, version } = project.config;
    const { tasks } = this.#catalogue;
    this.#printer.jsonLine({
      event: "ready",
      name,
      version,
      url: this.#url,
      mcpUrl: this.mcpUrl,
      port,
      ...this.#catalogue,
      tasks: tasks.map(({ id }) => id),
    });
    if (this.#options.quiet) this.#printer.print(`${formatRef({ name, version })} ${this.#url}`);
    else this.#welcome(project, port);
  }

  onEvent(event: DevEvent): void {
    switch (event.event) {
      case "changed":
        this.#changedAt = performance.now();
        this.#changed = event.files;
        this.#printer.jsonLine(event);
        return;
      case "serving":
        // The first one is printed by `open`, when the port is known.
        if (this.#url !== "") this.#reloaded(event.project);
        return;
      case "failed":
        this.#printer.jsonLine({ event: "failed", ...failureAsJson(event.failure), isStillServing: event.isStillServing });
        this.#printError(failureText(event.failure, this.#terminal.stderr.colors, this.#terminal.cwd));
        this.#printError(event.isStillServing ? "  The previous version is still served." : "  Nothing is served until it loads.");
        return;
      case "unhealthy":
        this.#printer.jsonLine(event);
        this.#printError(`${this.#terminal.stderr.colors.yellow("!")} the environment has loaded, and is not healthy yet: ${event.reason}`);
        if (event.isStillServing) this.#printError("  The previous version is served until it is.");
        return;
      case "crashed":
        this.#printer.jsonLine(event);
        this.#printError(
          `${this.#terminal.stderr.colors.red("✖")} the environment crashed (${event.how}); it is restarted when you save a file`,
        );
        return;
      case "output":
        this.#printer.jsonLine(event);
        if (!this.#printer.isJson) this.#terminal[event.stream].write(`${event.line}\n`);
        return;
    }
  }

  inspector(line: string): void {
    this.#printer.jsonLine({ event: "inspector", line });
    this.#printer.print(`${this.#printer.output.colors.magenta("inspector")} ${line}`);
  }

  stopping(): void {
    this.#printer.jsonLine({ event: "stopping" });
    if (!this.#options.quiet) this.#printer.print(this.#printer.output.colors.dim("\nStopping after calls in flight have finished."));
  }

  async #reloaded(project: Project): Promise<void> {
    const ms = Math.round(performance.now() - this.#changedAt);
    const files = this.#changed;
    const before = this.#catalogue;
    try {
      this.#catalogue = await this.#fetchCatalogue(project);
    } catch {
      // It crashed at once, which is an event of its own.
      return;
    }
    if (files.includes("config.json")) this.#warn(project);
    const { name, version } = project.config;
    this.#printer.jsonLine({
      event: "reloaded",
      name,
      version,
      files,
      ms,
      ...this.#catalogue,
      tasks: this.#catalogue.tasks.map(({ id }) => id),
    });
    if (this.#options.quiet) return;
    const { colors } = this.#printer.output;
    const more = files.length > 1 ? ` and ${files.length - 1} more` : "";
    this.#printer.print(`${colors.green("✔")} ${time()} reloaded ${files[0]}${more} ${colors.dim(`in ${ms} ms`)}`);
    const [old, now] = [catalogueNames(before), catalogueNames(this.#catalogue)];
    for (const each of now) if (!old.includes(each)) this.#printer.print(colors.green(`  + ${each}`));
    for (const each of old) if (!now.includes(each)) this.#printer.print(colors.red(`  - ${each}`));
  }

  async #fetchCatalogue({ config }: Project): Promise<CatalogueWithTasks> {
    if (config.runtime !== undefined) return this.#fetchOffer(formatRef(config));
    return Environment.use(formatRef(config), { instanceUrl: this.#url }, async (environment) => ({
      ...(await fetchCatalogue(environment)),
      tasks: await this.#fetchTasks(environment),
    }));
  }

  /** What a command offers, as far as it says so: any server may be one. */
  async #fetchOffer(ref: string): Promise<CatalogueWithTasks> {
    const options = { instanceUrl: this.#url, skipHealthCheck: true, timeoutMs: OFFER_MS, maxRetries: 0 };
    return Environment.use(ref, options, async (environment) => ({ ...(await fetchOffer(environment)), tasks: [] }));
  }

  /** Tasks may need data that is not there yet. Then the environment is served anyway, with a warning. */
  async #fetchTasks(environment: Environment): Promise<readonly Task[]> {
    try {
      return await environment.tasks();
    } catch (error) {
      const message = `the tasks cannot be listed: ${rootMessage(error)}`;
      this.#printer.jsonLine({ event: "warning", message });
      warn(this.#terminal, message);
      return [];
    }
  }

  #welcome({ config, root }: Project, port: number): void {
    const { output } = this.#printer;
    const { colors } = output;
    const print = (text = "") => this.#printer.print(text);
    const line = (title: string, text: string) => print(`  ${colors.dim(title.padEnd(12))}${text}`);
    const address = port === DEFAULT_PORT ? "" : ` --url ${this.#url}`;
    print(`${colors.green("✔")} ${colors.bold(formatRef(config))} is served at ${colors.cyan(this.#url)}`);
    if (this.#options.host !== host(this.#url)) print(colors.yellow("  Other machines on the network can call it too."));
    print();
    print(catalogueTable(this.#catalogue, output));
    print();
    for (const text of taskLines(this.#catalogue.tasks, address)) print(text);
    if (config.runtime === undefined) line("Page", colors.cyan(`${this.#url}/`));
    line("MCP client", colors.cyan(this.mcpUrl));
    line("Trainer", `${colors.cyan(this.#url)}  ${colors.dim("/health  /functions/list  /task/reward")}`);
    if (port === DEFAULT_PORT) line("SDK", `DUMMY_INSTANCE_IP=http://localhost  ${colors.dim(`new Environment("${config.name}")`)}`);
    else line("SDK", `new Environment("${config.name}", { instanceUrl: "${this.#url}" })`);
    const [tool] = this.#catalogue.tools;
    if (tool !== undefined) line("Shell", `aenv call ${callExample(tool)}${address}  ${colors.dim(`or: aenv call --list${address}`)}`);
    print();
    print(colors.dim("  Configuration of an MCP client:"));
    const snippet = JSON.stringify({ mcpServers: { [config.name]: { type: "http", url: this.mcpUrl } } }, null, 2);
    print(snippet.replace(/^/gm, "  "));
    print();
    print(colors.dim(`Watching ${root}. Ctrl-C stops.`));
  }

  #warn({ warnings }: Project): void {
    for (const { message, place } of warnings) this.#printer.jsonLine({ event: "warning", message, ...place });
    warnProblems(this.#terminal, warnings);
  }

  #printError(text: string): void {
    this.#terminal.stderr.write(`${text}\n`);
  }
}

const SHOWN_TASKS = 10;

/** The first tasks, a line each, and how to see the rest. */
function taskLines(tasks: readonly Task[], address: string): string[] {
  if (tasks.length === 0) return [];
  const width = Math.min(24, Math.max(...tasks.slice(0, SHOWN_TASKS).map(({ id }) => id.length)));
  const shown = tasks
    .slice(0, SHOWN_TASKS)
    .map(({ id, instruction = "" }) => `    ${id.padEnd(width)}  ${truncate(instruction, 70)}`.trimEnd());
  const rest = tasks.length - shown.length;
  return [`  ${countText(tasks.length, "task")}`, ...shown, ...(rest > 0 ? [`    ${rest} more: aenv call --tasks${address}`] : []), ""];
}

/** The environment's own message, without the prefix of the client. */
function rootMessage(error: unknown): string {
  return messageOf(error).replace(/^could not list the tasks of '[^']*': (?:tasks of the environment failed: )?/, "");
}

function host(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

function time(): string {
  return new Date().toTimeString().slice(0, 8);
}
