import { formatRef } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { failureBlock } from "../block.ts";
import { callExample, fetchOffer, type Offer, offeredNames, offerTable } from "../catalogue.ts";
import { failureAsJson } from "../failure.ts";
import type { Project } from "../project.ts";
import type { Terminal, Voice } from "../terminal.ts";
import { warnOf } from "../warning.ts";
import type { DevEvent } from "./server.ts";

/** Where the original's clients look for an environment. */
const USUAL_PORT = 8081;

/** Tells what happens: to people as it suits them, to programs as one JSON line each. */
export class Narrator {
  readonly #voice: Voice;
  readonly #terminal: Terminal;
  readonly #options: { readonly host: string; readonly quiet?: boolean };
  #url = "";
  #offer: Offer = { tools: [], functions: [], rewards: [] };
  #changedAt = 0;
  #changed: readonly string[] = [];

  constructor(voice: Voice, terminal: Terminal, options: { readonly host: string; readonly quiet?: boolean }) {
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
    this.#warn(project);
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
    if (files.includes("config.json")) this.#warn(project);
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
    if (this.#options.host !== host(this.#url)) say(colors.yellow("  Other machines that reach this one can call it too."));
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

  #warn({ warnings }: Project): void {
    for (const { message, place } of warnings) this.#voice.event({ event: "warning", message, ...place });
    warnOf(this.#terminal, warnings);
  }

  #complain(text: string): void {
    this.#terminal.stderr.write(`${text}\n`);
  }
}

function host(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

function time(): string {
  return new Date().toTimeString().slice(0, 8);
}
