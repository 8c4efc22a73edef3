import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Files } from "@aenv/testing";
import { freePorts, type Ports, portVariables, withPorts } from "./addresses.ts";
import { type Block, commandsOf, splitServer } from "./blocks.ts";
import { Running } from "./running.ts";

export interface ReaderOptions {
  /** The folder in which the reader starts. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether a command or a snippet cannot be run here. */
  readonly isLeftOut: (printed: string) => boolean;
  /** Folders that a reader already has, by their path in a command, and their files. */
  readonly existing?: Readonly<Record<string, Files>>;
  /** The endpoint of the model that the docs have at 127.0.0.1:8000. */
  readonly modelUrl?: string;
}

/** Runs the blocks of a document in order, like a user with a second terminal. Leaving the scope stops the servers. */
export class Reader implements AsyncDisposable {
  /** `aenv run` and `aenv server` keep running while other commands run; each has its own addresses. */
  readonly #servers = new Map<"run" | "platform", Running>();
  #options: ReaderOptions;
  readonly #ports: Ports;
  #cwd: string;
  #snippets = 0;

  static async open(options: ReaderOptions): Promise<Reader> {
    return new Reader(options, await freePorts());
  }

  private constructor(options: ReaderOptions, ports: Ports) {
    this.#options = { ...options, env: { ...options.env, ...portVariables(ports) } };
    this.#ports = ports;
    this.#cwd = options.cwd;
  }

  async read({ language, code }: Block): Promise<void> {
    if (language === "ts") await this.#snippet(code);
    else for (const command of commandsOf(code)) await this.command(command);
  }

  /** Runs a command line to its end and returns its output. For a server, waits until it prints its address. */
  async command(printed: string): Promise<string> {
    if (this.#options.isLeftOut(printed)) return "";
    const command = this.#withAddresses(printed);
    const [, name, value] = /^export (\w+)=(\S*)$/.exec(command) ?? [];
    // Each command has a shell of its own.
    if (name !== undefined) this.#options = { ...this.#options, env: { ...this.#options.env, [name]: value } };
    const parts = splitServer(command);
    if (parts === null) return await this.#foreground(command);
    if (parts.before !== "") await this.#foreground(parts.before);
    const kind = /\brun\b/.test(parts.server) ? "run" : "platform";
    await this.stop(kind);
    const server = this.#start("bash", ["-c", `exec ${parts.server}`]);
    this.#servers.set(kind, server);
    await server.prints(`:${kind === "run" ? this.#ports.run : this.#ports.data}`);
    return server.output;
  }

  /** Ctrl-C in the terminal of a server. */
  async stop(kind: "run" | "platform"): Promise<void> {
    await this.#servers.get(kind)?.stop("SIGINT");
    this.#servers.delete(kind);
  }

  async #foreground(command: string): Promise<string> {
    for (const [path, files] of Object.entries(this.#options.existing ?? {})) {
      if (command.includes(path)) this.#writeFolder(path, files);
    }
    const where = join(this.#options.cwd, ".cwd");
    // The next command starts in the folder in which this one ends, as in a shell.
    await using running = this.#start("bash", ["-c", `set -e\n${command}\npwd > '${where}'`]);
    const code = await running.ended();
    if (code !== 0) throw new Error(`'${command}' in ${this.#cwd} ended with ${code}:\n${running.output}`);
    this.#cwd = readFileSync(where, "utf8").trim();
    return running.output;
  }

  async #snippet(printed: string): Promise<void> {
    if (this.#options.isLeftOut(printed)) return;
    const code = this.#withAddresses(printed);
    if (/^(?:export default|register\w+\()/m.test(code)) return await this.#mustEnd(this.#write(code), servingOf);
    if (code.includes('process.once("SIGTERM"')) return await this.#mustServe(`${code}\nconsole.log(served.url);\n`);
    await this.#mustEnd(this.#write(code));
  }

  /** An environment is served; a program is run to its end. */
  async #mustEnd(file: string, programOf?: (file: string) => string): Promise<void> {
    const program = programOf === undefined ? file : this.#write(programOf(file));
    await using running = this.#start(process.execPath, [program]);
    const code = await running.ended();
    if (code !== 0 || running.output.includes("Assertion failed")) throw new Error(`${file} ended with ${code}:\n${running.output}`);
  }

  async #mustServe(code: string): Promise<void> {
    await this.stop("run");
    await using server = this.#start(process.execPath, [this.#write(code)]);
    await server.prints(`:${this.#ports.run}`);
    const exit = await server.stop("SIGTERM");
    if (exit !== 0) throw new Error(`it ended with ${exit} when it was stopped:\n${server.output}`);
  }

  #withAddresses(printed: string): string {
    const text = withPorts(printed, this.#ports);
    const { modelUrl } = this.#options;
    if (modelUrl === undefined) return text;
    // The agent's model is found by OPENAI_BASE_URL; the user of tau2 has an address of its own.
    return text
      .replaceAll("http://127.0.0.1:8000/v1", modelUrl)
      .replaceAll("--var TAU2_USER_LLM=", `--var TAU2_USER_LLM_API_BASE=${modelUrl} --var TAU2_USER_LLM=`);
  }

  #writeFolder(path: string, files: Files): void {
    for (const [name, text] of Object.entries(files)) {
      const file = join(this.#cwd, path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, String(text));
    }
  }

  #write(code: string): string {
    // In a hidden folder: `aenv run` would reload the project while the program calls it.
    const folder = join(this.#cwd, ".printed");
    mkdirSync(folder, { recursive: true });
    const file = join(folder, `${++this.#snippets}.ts`);
    writeFileSync(file, code);
    return file;
  }

  #start(command: string, args: readonly string[]): Running {
    return new Running(command, args, { cwd: this.#cwd, env: this.#options.env });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server[Symbol.asyncDispose]()));
  }
}

const servingOf = (file: string) => `import { loadEnvironment, serve } from "aenvironment";
const { definition } = await loadEnvironment(${JSON.stringify(file)});
const served = await serve(definition, { port: 0 });
const { ok } = await fetch(served.url + "/health");
await served.close();
if (!ok) throw new Error("it is not healthy");
`;
