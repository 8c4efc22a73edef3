import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The commands with which a person plays a task's solution in a container and runs its tests. */
export class DockerByHand implements Disposable {
  readonly #socket: string;
  readonly #image: string;
  readonly #config: string;

  private constructor(socket: string, image: string, config: string) {
    this.#socket = socket;
    this.#image = image;
    this.#config = config;
  }

  static async open(socket: string, image: string, authFile: string): Promise<DockerByHand> {
    const config = mkdtempSync(join(tmpdir(), "aenv-bench-docker-"));
    cpSync(authFile, join(config, "config.json"));
    const docker = new DockerByHand(socket, image, config);
    await docker.#run("pull", "--quiet", image);
    return docker;
  }

  /** One container for the solution and the tests. Throws if the tests give no reward of 1. */
  async play(folder: string): Promise<void> {
    const id = await this.#start();
    try {
      await this.#run("cp", join(folder, "solution"), `${id}:/solution`);
      await this.#run("exec", id, "bash", "/solution/solve.sh");
      await this.#run("cp", join(folder, "tests"), `${id}:/tests`);
      await this.#run("exec", id, "bash", "-c", "mkdir -p /logs/verifier; bash /tests/test.sh");
      const reward = await this.#run("exec", id, "bash", "-c", "cat /logs/verifier/reward.*");
      if (!/\b1\b/.test(reward)) throw new Error(`${folder} has the reward ${reward}`);
    } finally {
      await this.#run("rm", "--force", id);
    }
  }

  /** Until the first command has ended, in milliseconds. */
  async firstCommand(): Promise<number> {
    const start = performance.now();
    const id = await this.#start();
    await this.#run("exec", id, "true");
    const took = performance.now() - start;
    await this.#run("rm", "--force", id);
    return took;
  }

  async #start(): Promise<string> {
    return (await this.#run("run", "--detach", "--init", "--network", "none", "--workdir", "/app", this.#image, "sleep", "3600")).trim();
  }

  async #run(...args: string[]): Promise<string> {
    const global = ["--host", `unix://${this.#socket}`, "--config", this.#config];
    return (await promisify(execFile)("docker", [...global, ...args], { encoding: "utf8" })).stdout;
  }

  [Symbol.dispose](): void {
    rmSync(this.#config, { recursive: true, force: true });
  }
}
